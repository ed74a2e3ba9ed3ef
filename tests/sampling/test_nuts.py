import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.sampling import NUTS, sample
from likely.sampling.nuts import Span, _turned


def normal(x):
    return -0.5 * x.square().sum(1)


def test_trees_double():
    """With tiny steps nothing turns, and a tree of depth j has 2ʲ − 1 leapfrog steps."""
    with pytest.warns(match="R-hat"):
        chains = sample(
            normal, torch.randn(8, 2, generator=torch.Generator().manual_seed(0)), NUTS(step_size=1e-3, max_depth=4),
            draws=20, warmup=0, random_state=0,
        )  # fmt: skip
    assert set(chains.stats["n_steps"].flatten().tolist()) == {15.0}
    assert set(chains.stats["tree_depth"].flatten().tolist()) == {4.0}


def test_trajectories_stop_when_they_turn(seed):
    """Of a unit normal half a period is π; the last doubling may overshoot."""
    chains = sample(normal, torch.zeros(3), NUTS(step_size=0.1), draws=30, warmup=10, chains=64, random_state=seed)
    steps, depth = chains.stats["n_steps"], chains.stats["tree_depth"]
    assert bool((steps <= 2**depth - 1).all())
    assert bool((steps >= 2 ** (depth - 1)).all())
    assert float(depth.max()) < 7
    assert math.pi / 4 < 0.1 * float(steps.mean()) < 2 * math.pi


def circle(begin, end, count):
    """Speeds along a turn from one angle to another."""
    angle = torch.linspace(begin, end, count, dtype=torch.float64)
    v = torch.stack([angle.cos(), angle.sin()], 1)[:, None]
    return Span(v.sum(0), v[0], v[-1])


@pytest.mark.parametrize(
    ("last", "turned"), [(0.2, False), (0.9 * math.pi, False), (1.1 * math.pi, True), (3.0, False)]
)
def test_a_turn_of_more_than_half_a_circle_is_a_u_turn(last, turned):
    """The chord of an arc makes an angle below 90° with both of its ends if the arc is less than half a circle."""
    half = last / 2
    assert bool(_turned(circle(0.0, half, 500), circle(half, last, 500))) is turned


def test_a_u_turn_between_two_halves_is_seen():
    """A whole circle and a bit leads forward at both ends; each half, with the next point of the other, does not."""
    last = 2.6 * math.pi
    halves = circle(0.0, last / 2, 500), circle(last / 2, last, 500)
    joined = Span(halves[0].ways + halves[1].ways, halves[0].first, halves[1].last)
    assert bool(((joined.ways * joined.first).sum() > 0) & ((joined.ways * joined.last).sum() > 0))
    assert bool(_turned(*halves))


def test_the_answer_does_not_depend_on_the_other_chains(seed):
    """Chains that are done wait for the others: with narrow and wide targets in one run, each keeps its own.

    Chains that start in their target end in it, so the squares of their last draws add up to χ²: three p-values, of
    which one is below 1e-5 in one of 30,000 runs.
    """
    scale = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64).repeat(1000)
    start = scale[:, None] * torch.randn(3000, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with pytest.warns(match="R-hat"):  # they disagree by design
        chains = sample(
            lambda x: -0.5 * (x[:, 0] / scale).square(),
            start,
            NUTS(step_size=0.12, max_depth=8),
            10,
            0,
            random_state=seed,
        )
    squares = (chains.draws[:, -1, 0] / scale).square().reshape(1000, 3).sum(0).numpy()
    assert np.all(2 * np.minimum(chi2.cdf(squares, 1000), chi2.sf(squares, 1000)) > 1e-5)


def test_it_is_a_value_with_checked_arguments():
    assert Spec.from_json(NUTS(max_depth=5).to_json()) == NUTS(max_depth=5)
    for arguments, message in [
        ({"step_size": math.inf}, "step_size"),
        ({"acceptance": 0.0}, "acceptance"),
        ({"max_depth": 0}, "max_depth"),
    ]:
        with pytest.raises(SpecError, match=message):
            NUTS(**arguments)
