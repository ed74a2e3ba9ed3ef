"""A chain of columns: its links, and the conditionals that draws and gaps come from."""

from __future__ import annotations

import math

import torch

from likely.core.random import isolated
from likely.models.generative.masked_density import MaskedDensity, links_of
from likely.models.generative.observed import columns_of
from likely.networks import MLP

ROWS = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]] * 5).double()
CUBE = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3)


def chain(orders=1):
    with isolated(0):
        density = MaskedDensity(columns_of("auto", ROWS), (3,), MLP((16,)), orders).double()
        density.adapt(ROWS, None, None)
        for parameter in density.parameters():
            parameter.data.normal_()
    return density.eval()


def test_each_column_is_a_link():
    assert [link.columns for link in links_of(columns_of("auto", ROWS))] == [slice(i, i + 1) for i in range(3)]


def test_gaps_have_their_conditional_by_enumeration():
    """E[x₂ | x₀, x₁] of the last column, and E[x₀ | x₁, x₂] by weights, against sums over all rows of the cube."""
    density = chain()
    with torch.no_grad(), isolated(1):
        p = density.log_prob(CUBE).exp()
        torch.testing.assert_close(p.sum(), torch.ones((), dtype=torch.float64))
        for gap, tolerance in ((2, 1e-9), (0, 0.35)):
            rows = CUBE[CUBE[:, gap] == 0].clone()
            exact = torch.stack(
                [
                    p[(CUBE[:, [c for c in range(3) if c != gap]] == own).all(1)]
                    for own in rows[:, [c for c in range(3) if c != gap]]
                ]
            )
            expected = exact[:, 1] / exact.sum(1)  # the cube is in order: 0 before 1
            rows[:, gap] = math.nan
            slots = density.expected(rows, None)[:, density.slots[gap]]
            torch.testing.assert_close(slots[:, -1], expected, atol=tolerance, rtol=0)


def test_the_order_with_the_gaps_last_is_chosen():
    density = chain(orders=4)
    row = torch.tensor([[math.nan, 1.0, 1.0]], dtype=torch.float64)
    best, exact = density.best_orders(row)
    last = [order[-1] for order in density.network.orders]
    assert bool(exact) == (0 in last)
    assert not exact or last[int(best)] == 0
