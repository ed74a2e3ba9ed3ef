"""What warm-up learns: the covariance of the target as a root, an ε in its units, and nothing after the end."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError
from likely.sampling.metric import moved, positive_or_none, start, thrown

TOTAL = 100
COVARIANCE = torch.tensor([[4.0, 1.2], [1.2, 1.0]], dtype=torch.float64)


def normal(x):
    return -0.5 * (x @ torch.linalg.inv(COVARIANCE) * x).sum(1)


@pytest.fixture
def state():
    return start("HMC", torch.ones(8, 2, dtype=torch.float64), normal, None)


def test_windows_of_rows_become_the_root_of_their_covariance(state, seed):
    """10,000 rows per step: L Lᵀ is the sample covariance, drawn to its diagonal by 5d/(n + 5d) ≈ 1e-5."""
    metric = state.tuning
    assert torch.equal(metric.factor, torch.ones(2, dtype=torch.float64))
    generator = torch.Generator().manual_seed(seed)
    root = torch.linalg.cholesky(COVARIANCE)
    for index in range(TOTAL):
        rows = torch.randn(10_000, 2, dtype=torch.float64, generator=generator) @ root.T
        metric = metric.after(rows, torch.full((8,), 0.8), 0.8, index, TOTAL)
    # 400,000 rows in the last window: the relative error of a variance is 0.0022, and 0.02 is nine of those
    torch.testing.assert_close(metric.factor @ metric.factor.T, COVARIANCE, rtol=0.02, atol=0.02)
    assert metric.settled
    assert metric.epsilon == metric.typical


def test_steps_shrink_while_too_few_are_accepted(state):
    before = metric = state.tuning
    for index in range(15):
        metric = metric.after(state.position, torch.zeros(8), 0.8, index, TOTAL)
    assert metric.epsilon < before.epsilon


def test_a_fixed_step_and_its_units_stay():
    metric = start("HMC", torch.ones(8, 2, dtype=torch.float64), normal, 0.25).tuning
    for index in range(TOTAL):
        metric = metric.after(torch.randn(8, 2, dtype=torch.float64), torch.zeros(8), 0.8, index, TOTAL)
    assert metric.epsilon == 0.25
    assert torch.equal(metric.factor, torch.ones(2, dtype=torch.float64))


def test_chains_move_where_they_are_accepted_only(state):
    point = thrown(state, state.tuning.factor, torch.Generator().manual_seed(0))
    there = point._replace(x=point.x + 1.0, value=point.value - 2.0, gradient=point.gradient * 3.0)
    accepted = torch.arange(8) % 2 == 0
    after = moved(state, there, accepted)
    for name, new in (("position", there.x), ("log_prob", there.value), ("gradient", there.gradient)):
        assert torch.equal(getattr(after, name)[accepted], new[accepted])
        assert torch.equal(getattr(after, name)[~accepted], getattr(state, name)[~accepted])


def test_integers_are_refused_and_steps_are_positive():
    with pytest.raises(DataError, match="HMC needs positions that are real numbers"):
        start("HMC", torch.ones(8, 2, dtype=torch.int64), normal, None)
    assert [positive_or_none(value) for value in (None, 0.1, 0.0, -1.0, float("inf"))] == [True, True] + [False] * 3
