"""Evidence maximisation on functions whose tops are known."""

from __future__ import annotations

import itertools

import pytest
import torch

from likely.core.errors import TrainingError
from likely.models.kernel.gp.evidence import maximise, stages


class Hill:
    """−rows/2 · (θ − top)ᵀ H (θ − top); above `wall` in the first number there is no evidence."""

    def __init__(self, rows, top, wall=1e9):
        self.count, self.top, self.wall = rows, torch.tensor(top, dtype=torch.float64), wall
        self.curvature = torch.tensor([[2.0, 0.8], [0.8, 1.0]], dtype=torch.float64)

    def __len__(self):
        return self.count

    def rows(self, index):
        shift = 1.0 / len(index)  # fewer rows have their top elsewhere
        return Hill(len(index), (self.top + shift).tolist(), self.wall)

    def value_and_grad(self, theta):
        if float(theta[0]) > self.wall:
            raise TrainingError("singular")
        away = theta - self.top
        pull = -self.count * self.curvature @ away
        return float(0.5 * pull @ away), pull


FREE = [(None, None)] * 2
ORIGIN = torch.zeros(2, dtype=torch.float64)


@pytest.mark.parametrize("rows", [10, 1600, 20_000])
def test_the_top_is_found_in_any_number_of_stages(rows):
    best = maximise(Hill(rows, [1.0, -2.0]), [ORIGIN], FREE)
    torch.testing.assert_close(best.hyperparameters, torch.tensor([1.0, -2.0]).double(), atol=2e-2, rtol=0)
    assert best.value > -1e-3
    assert best.converged
    assert best.held == ()


def test_a_bound_that_holds_a_number_back_is_named():
    best = maximise(Hill(50, [1.0, -2.0]), [ORIGIN], [(None, None), (-1.0, 1.0)])
    assert best.held == (1,)
    assert not best.converged
    assert best.without({0}) == best
    assert best.without({1}).converged  # the climb came to its end there
    assert best.without({1}).held == ()
    assert float(best.hyperparameters[1]) == -1.0
    assert float(best.hyperparameters[0]) == pytest.approx(1.0 - 0.4, abs=1e-2)  # the top along the bound: −H₀₁/H₀₀ · 1


def test_the_best_of_several_starts_wins_and_all_are_counted():
    calls = []
    best = maximise(
        Hill(10, [1.0, -2.0], wall=5.0),
        [torch.tensor([9.0, 0.0]).double(), ORIGIN],  # the first start has no evidence
        FREE,
        report=lambda done, **values: calls.append(values["log_evidence"]),
    )
    assert best.evaluations == len(calls)
    assert best.value == pytest.approx(max(calls))


def test_a_step_too_far_is_taken_back():
    best = maximise(Hill(100, [1.0, -2.0], wall=1.05), [torch.tensor([-3.0, 3.0]).double()], FREE)
    torch.testing.assert_close(best.hyperparameters, torch.tensor([1.0, -2.0]).double(), atol=2e-2, rtol=0)


def test_without_any_start_the_error_is_that_of_the_first():
    with pytest.raises(TrainingError, match="singular"):
        maximise(Hill(10, [1.0, -2.0], wall=-1.0), [ORIGIN, ORIGIN + 1], FREE)


@pytest.mark.parametrize("rows", [1, 499, 1499, 1500, 5000, 100_000])
def test_stages_grow_by_three_at_most_about_and_end_with_all(rows):
    sizes = stages(rows)
    assert sizes[-1] == rows
    assert all(before < after <= 3 * before + 3 for before, after in itertools.pairwise(sizes))
    assert sizes[0] == rows or sizes[0] >= 500
