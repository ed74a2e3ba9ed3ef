"""Stick-breaking: every real vector is a distribution and back, 0 is the uniform one, and zeros stay zeros."""

from __future__ import annotations

import math

import pytest
import torch

from likely.inference.latent.simplex import Simplex, from_sticks, log_sticks, pull_sticks, to_sticks

ALLOWED = torch.tensor([[True, True, True, True], [False, True, True, False], [False, False, False, True]])


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_round_trips_and_uniform_at_zero(size):
    free = 2 * draw(7, size - 1)
    probabilities = from_sticks(free)
    assert probabilities.shape == (7, size)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(7, dtype=torch.float64))
    torch.testing.assert_close(to_sticks(probabilities), free, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        from_sticks(torch.zeros_like(free)), torch.full((7, size), 1 / size, dtype=torch.float64)
    )


def test_sticks_are_broken_as_the_equation_says():
    """pⱼ = zⱼ Π_{i<j} (1 − zᵢ) with zⱼ = σ(φⱼ − log(K − j)), j = 1, …, K − 1."""
    free = draw(4)
    left, expected = 1.0, []
    for j, phi in enumerate(free.tolist(), 1):
        z = 1 / (1 + math.exp(-(phi - math.log(5 - j))))
        expected.append(left * z)
        left *= 1 - z
    torch.testing.assert_close(from_sticks(free), torch.tensor([*expected, left], dtype=torch.float64))


def test_rows_with_forbidden_entries_have_fewer_free_numbers():
    rows = Simplex(ALLOWED)
    assert rows.size == 3 + 1 + 0
    free = draw(6, rows.size)
    natural = rows.natural(free)
    assert natural.shape == (6, 3, 4)
    assert bool((natural[:, ~ALLOWED] == 0).all())
    assert bool((natural[:, ALLOWED] > 0).all())
    torch.testing.assert_close(rows.free(natural), free, rtol=1e-6, atol=1e-6)
    uniform = ALLOWED.double() / ALLOWED.sum(1, keepdim=True)
    torch.testing.assert_close(rows.natural(torch.zeros(4, dtype=torch.float64)), uniform)


def test_a_probability_of_zero_has_a_finite_number():
    free = to_sticks(torch.tensor([0.0, 0.4, 0.6], dtype=torch.float64))
    assert bool(free.isfinite().all())
    torch.testing.assert_close(from_sticks(free), torch.tensor([0.0, 0.4, 0.6], dtype=torch.float64), rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_logarithms_and_their_gradient_are_those_of_the_probabilities(size):
    free, weight = 3 * draw(7, size - 1), draw(7, size)
    logs, sticks = log_sticks(free)
    point = free.clone().requires_grad_()
    expected = from_sticks(point).log()
    torch.testing.assert_close(logs, expected.detach(), rtol=1e-9, atol=1e-12)
    if size > 1:
        (gradient,) = torch.autograd.grad(expected, point, weight)
        torch.testing.assert_close(pull_sticks(sticks, weight), gradient, rtol=1e-9, atol=1e-12)


def test_logarithms_stay_finite_far_from_the_middle():
    logs, _ = log_sticks(torch.tensor([900.0, -900.0]).double())
    expected = torch.tensor([0.0, -1800.0, -900.0], dtype=torch.float64) + math.log(2) * torch.tensor([0.0, 1.0, 1.0])
    torch.testing.assert_close(logs, expected, atol=1e-6, rtol=1e-12)


@pytest.mark.parametrize("allowed", [ALLOWED, torch.ones(3, 4, dtype=torch.bool)], ids=["some", "all"])
def test_rows_in_logarithms_go_back_as_autograd_does(allowed):
    rows = Simplex(allowed)
    free = draw(2, rows.size)
    weight = torch.where(allowed, draw(2, 3, 4), 0.0)
    logs, sticks = rows.logs(free)
    torch.testing.assert_close(logs.exp(), rows.natural(free), rtol=1e-9, atol=1e-12)
    assert torch.equal(logs == -torch.inf, ~allowed.expand(2, 3, 4))
    point = free.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(torch.where(allowed, rows.natural(point), 1.0).log(), point, weight)
    torch.testing.assert_close(rows.pull(sticks, weight), gradient, rtol=1e-9, atol=1e-12)
