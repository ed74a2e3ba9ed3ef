"""A mixture as inference sees it: its E-step, its density of free parameters, and its rows."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from likely.inference import Latent
from likely.likelihoods import Poisson
from likely.models.emissions import Columns, GaussianEmission
from likely.models.mixtures.components import Components

ROWS, K = 30, 2


def bound(kind, *, missing=False, weighted=False, smoothing=0.0):
    x = torch.poisson(torch.full((ROWS, 2), 3.0, dtype=torch.float64))
    if missing:
        x[::4, 0], x[1::5, 1] = torch.nan, torch.nan
    weight = torch.rand(ROWS, dtype=torch.float64) if weighted else None
    emission = Columns.of(Poisson(), x, smoothing=smoothing) if kind == "poisson" else GaussianEmission(2, kind)
    return Components(emission, x, weight, K, "random"), x


def by_rows(model, params):
    """log p(xᵢ, k) of the model's rows, for the first start: (n, K)."""
    return (model.emission.log_prob(params, model.x) + params["weights"].log())[:, 0]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", ["poisson", "full", "tied", "diag", "spherical"])
def test_the_density_of_rows_is_the_sum_over_components(kind, missing):
    model, _ = bound(kind, missing=missing, weighted=True)
    params = model.start([0, 1])
    values = model.row_log_prob(params, model.x)
    assert values.shape == (ROWS, 2)
    torch.testing.assert_close(values[:, 0], by_rows(model, params).logsumexp(-1), rtol=1e-9, atol=1e-9)
    for name, value in model.from_free(model.to_free(params)).items():
        torch.testing.assert_close(value, params[name], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_one_step_of_em_is_that_of_responsibilities(weighted):
    model, _ = bound("poisson", weighted=weighted)
    params = model.start([0])
    statistics, value = model.expect(params)
    joint = by_rows(model, params)
    weight = torch.ones(ROWS, dtype=torch.float64) if model.weight is None else model.weight
    share = weight.unsqueeze(-1) * joint.softmax(-1)
    torch.testing.assert_close(value[0], weight @ joint.logsumexp(-1), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(statistics["counts"][0], share.sum(0), rtol=1e-10, atol=1e-10)
    new = model.maximise(params, statistics)
    torch.testing.assert_close(new["weights"][0], share.sum(0) / weight.sum(), rtol=1e-10, atol=1e-10)
    rates = (share.T @ model.x) / share.sum(0).unsqueeze(-1)
    torch.testing.assert_close(new["eta"][0].exp(), rates, rtol=1e-9, atol=1e-9)
    assert model.log_likelihood(params) == pytest.approx(float(value), rel=1e-12)


def test_smoothing_is_in_the_value_and_in_the_density_alike():
    model, _ = bound("poisson", weighted=True, smoothing=0.7)
    params = model.start([0])
    expected = model.weight @ model.row_log_prob(params, model.x)
    torch.testing.assert_close(model.expect(params)[1], expected, rtol=1e-10, atol=1e-10)
    assert model.log_likelihood(params) != pytest.approx(float(expected[0]), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", ["poisson", "full"])
def test_the_gradient_from_responsibilities_is_that_of_autograd(kind, weighted):
    model, _ = bound(kind, missing=True, weighted=weighted, smoothing=0.7)
    free = {name: torch.randn_like(value) for name, value in model.to_free(model.start([0, 1, 2])).items()}
    value, gradient = model.value_and_grad(free, model.x, model.weight, 1.0)
    expected, by_autograd = Latent.value_and_grad(model, free, model.x, model.weight, 1.0)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)
    assert gradient.keys() == free.keys()
    for name, own in by_autograd.items():
        torch.testing.assert_close(gradient[name], own, rtol=1e-7, atol=1e-8)


def test_rows_that_miss_the_same_stand_together_and_know_their_place():
    model, x = bound("diag", missing=True)
    codes = [tuple(row) for row in model.x.isnan().tolist()]
    assert len([1 for a, b in itertools.pairwise(codes) if a != b]) == len(set(codes)) - 1
    for row in range(ROWS):
        torch.testing.assert_close(model.x[row], x[model.place(row)], equal_nan=True)


def test_a_component_without_rows_is_held_up_by_smoothing_alone():
    x = torch.cat([torch.zeros(20, 1), torch.arange(5.0, 25.0).reshape(-1, 1)]).double()
    model = Components(Columns.of(Poisson(), x, smoothing=1e-6), x, None, 2, "random")
    params = {
        "eta": torch.tensor([[[-20.0], [math.log(15.0)]]], dtype=torch.float64),
        "weights": torch.full((1, 2), 0.5, dtype=torch.float64),
    }
    assert model.held(params) == []  # a rate of 10⁻⁸ explains zeros no better than one of 10⁻⁹
    params["weights"] = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    assert model.held(params) == [0]
