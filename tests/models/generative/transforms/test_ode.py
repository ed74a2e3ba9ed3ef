"""Solvers of differential equations: their order, their error, and paths that lead nowhere."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import TrainingError
from likely.models.generative.transforms.ode import adaptive, fixed


def test_solvers_have_their_orders():
    def turning(t, state):
        x = state[0]
        return (torch.stack([-x[:, 1], x[:, 0]], 1) * (1 + t),)

    start = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    angle = torch.tensor(1.5, dtype=torch.float64)  # ∫ (1 + t) dt
    expected = torch.stack([angle.cos(), angle.sin()])[None]
    errors = []
    for steps in (10, 20):
        *_, (end,) = fixed(turning, (start,), 0.0, 1.0, steps)
        errors.append(float((end - expected).norm()))
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.2)  # fourth order
    for tol in (1e-4, 1e-7, 1e-10):
        (end,) = adaptive(turning, (start,), 0.0, 1.0, tol)
        assert float((end - expected).norm()) < 10 * tol


def test_a_path_that_leaves_the_numbers_is_named():
    start = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(TrainingError, match=r"leaves what numbers can hold|took more than"):
        adaptive(lambda t, state: (state[0] ** 3,), (start,), 0.0, 10.0, 1e-6)  # infinite at t = ½
