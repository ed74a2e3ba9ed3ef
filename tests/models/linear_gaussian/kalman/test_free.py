"""Learned matrices as real numbers: there and back, and what is not learned stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.models.linear_gaussian.kalman.free import FreeMatrices
from likely.models.linear_gaussian.kalman.recursion import System

ALL = frozenset(System._fields)


def tensors(system):
    return {name: torch.from_numpy(getattr(system, name)) for name in System._fields}


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_there_and_back(make_system, diagonal):
    first, *others = (tensors(make_system(seed)) for seed in range(3))
    params = {name: torch.stack([other[name] for other in others]) for name in first}
    if diagonal:
        params = {
            name: torch.diag_embed(value.diagonal(dim1=-2, dim2=-1)) if name.endswith("covariance") else value
            for name, value in params.items()
        }
    free = FreeMatrices(first, ALL, diagonal=diagonal)
    phi = free.to_free(params)
    assert phi["transition_covariance"].shape == ((2, 2) if diagonal else (2, 3))
    for name, value in free.from_free(phi).items():
        np.testing.assert_allclose(value, params[name], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_a_variance_of_zero_stays_zero(make_system, diagonal):
    first = tensors(make_system(0, k=3))
    first["transition_covariance"] = torch.diag(torch.tensor([2.0, 0.0, 0.5], dtype=torch.float64))
    free = FreeMatrices(first, frozenset({"transition_covariance"}), diagonal=diagonal)
    phi = free.to_free({name: value.unsqueeze(0) for name, value in first.items()})
    assert list(phi) == ["transition_covariance"]
    np.testing.assert_allclose(phi["transition_covariance"], 0.0, atol=1e-12)  # the first guess is φ = 0
    moved = free.from_free({"transition_covariance": phi["transition_covariance"] + 0.7})
    covariance = moved["transition_covariance"][0].numpy()
    assert not covariance[1].any()
    assert not covariance[:, 1].any()
    assert (np.linalg.eigvalsh(covariance[np.ix_([0, 2], [0, 2])]) > 0).all()


def test_what_is_not_learned_is_as_in_the_first(make_system):
    first, other = tensors(make_system(0)), tensors(make_system(1))
    free = FreeMatrices(first, frozenset({"observation"}), diagonal=False)
    back = free.from_free(free.to_free({name: value.unsqueeze(0) for name, value in other.items()}))
    np.testing.assert_allclose(back["observation"][0], other["observation"], rtol=1e-12)
    for name in ALL - {"observation"}:
        np.testing.assert_array_equal(back[name][0], first[name])


def test_a_covariance_that_is_singular_is_written_nearly():
    first = {"initial_covariance": 4 * torch.eye(2, dtype=torch.float64)}
    free = FreeMatrices(first, frozenset(first), diagonal=False)
    flat = {"initial_covariance": torch.ones(1, 2, 2, dtype=torch.float64)}
    back = free.from_free(free.to_free(flat))["initial_covariance"]
    np.testing.assert_allclose(back, flat["initial_covariance"], atol=1e-9)
