"""Cover's count against linear programs for every labelling, and Barron's rate against networks of random units."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from likely.core.errors import SpecError
from likely.theory.capacity import barron_bound, capacity, cover_count, separable_fraction


def separable(X, signs):
    """Whether some w has y_i w·x_i ≥ 1 for all rows: a linear program without an objective."""
    answer = linprog(np.zeros(X.shape[1]), -signs[:, None] * X, -np.ones(len(X)), bounds=(None, None))
    assert answer.status in (0, 2)  # solved, or infeasible
    return answer.status == 0


@pytest.mark.parametrize(("n", "dimension"), [(1, 1), (4, 1), (3, 3), (4, 2), (5, 2), (5, 3), (6, 3), (6, 5)])
def test_the_count_is_that_of_linear_programs_for_every_labelling(n, dimension):
    X = np.random.default_rng(n).normal(size=(n, dimension))
    labellings = itertools.product([-1.0, 1.0], repeat=n)
    assert sum(separable(X, np.array(signs)) for signs in labellings) == cover_count(n, dimension)


def test_a_bias_is_one_dimension_more():
    """Of four points in general position in the plane, all labellings but the two XORs are separable by a line."""
    X = np.column_stack([[[0.0, 0.1], [1.0, 0.0], [0.0, 1.0], [1.1, 1.0]], np.ones(4)])
    inseparable = [signs for signs in itertools.product([-1.0, 1.0], repeat=4) if not separable(X, np.array(signs))]
    assert inseparable == [(-1.0, 1.0, 1.0, -1.0), (1.0, -1.0, -1.0, 1.0)]
    assert cover_count(4, 3) == 14


def test_random_labellings_are_separable_as_often_as_cover_says(seed):
    """150 draws per point; each fraction within 4.5 standard errors (false alarm below 1 in 10⁴)."""
    generator = np.random.default_rng(seed)
    for n in (8, 12, 16):
        fraction = separable_fraction(n, 6)
        hits = sum(separable(generator.normal(size=(n, 6)), generator.choice([-1.0, 1.0], size=n)) for _ in range(150))
        assert abs(hits / 150 - fraction) < 4.5 * math.sqrt(fraction * (1 - fraction) / 150)


def test_the_count_is_the_sum_and_obeys_its_recursion():
    """A new point doubles the labellings whose plane can go through it: C(n + 1, d) = C(n, d) + C(n, d − 1)."""
    for n, d in itertools.product(range(1, 12), range(1, 12)):
        assert cover_count(n, d) == 2 * sum(math.comb(n - 1, k) for k in range(d))
        if d > 1:
            assert cover_count(n + 1, d) == cover_count(n, d) + cover_count(n, d - 1)
        if n <= d:
            assert cover_count(n, d) == 2**n


@pytest.mark.parametrize("dimension", [1, 3, 10, 400])
def test_half_of_all_labellings_are_separable_at_capacity(dimension):
    assert capacity(dimension) == 2 * dimension
    assert separable_fraction(capacity(dimension), dimension) == 0.5


def test_the_change_at_capacity_is_sharp_in_many_dimensions():
    below = [separable_fraction(int(1.8 * d), d) for d in (10, 100, 1000)]
    above = [separable_fraction(int(2.2 * d), d) for d in (10, 100, 1000)]
    assert below == sorted(below)
    assert above == sorted(above, reverse=True)
    assert below[-1] > 0.999
    assert above[-1] < 0.001


def test_networks_of_random_steps_meet_barrons_bound():
    """f = Σ c cos(a·x) is an average of steps 1[a·x > t]; m drawn from it miss f by (2rC)²/m or less, on average.

    In ten dimensions. The squared error of a row is, on average, a step's variance there divided by m: within 6
    standard errors of 200 draws (false alarms below 1e-5, also for the skewed means of squares).
    """
    generator = np.random.default_rng(0)
    c, a = np.array([0.5, -1.0, 0.3]), generator.normal(size=(3, 10))
    lengths = np.linalg.norm(a, axis=1)
    X = generator.normal(size=(400, 10))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))  # the unit ball
    f = np.cos(X @ a.T) @ c
    constant = float(np.abs(c) @ lengths)
    # cos z = cos R − ∫ sin t · 1[z > t] dt over −R < t < R, with the integral as a fine sum
    grids = [np.linspace(-length, length, 4001)[:-1] + length / 4000 for length in lengths]
    heights = np.concatenate([-c[j] * np.sin(grid) * lengths[j] / 2000 for j, grid in enumerate(grids)])
    thresholds, which = np.concatenate(grids), np.repeat(np.arange(3), 4000)
    start, total = float(c @ np.cos(lengths)), np.abs(heights).sum()
    assert total <= 2 * constant
    on, chance = (X @ a.T)[:, which] > thresholds, np.abs(heights) / total
    mean = on @ heights
    np.testing.assert_allclose(start + mean, f, atol=0.01)
    variance = np.mean(total**2 * (on @ chance) - mean**2)
    for width in (10, 100, 1000):
        assert variance / width <= barron_bound(constant, width)
    for width in (10, 100):
        errors = []
        for _ in range(200):
            units = generator.choice(len(heights), size=width, p=chance)
            g = total * (on[:, units] * np.sign(heights[units])).mean(1)
            errors.append(np.square(mean - g).mean())
        assert abs(np.mean(errors) - variance / width) < 6 * np.std(errors) / math.sqrt(200)


def test_wrong_arguments_are_named():
    with pytest.raises(SpecError, match="n=0 must be a number of points: an integer, 1 or more"):
        cover_count(0, 3)
    with pytest.raises(SpecError, match=r"dimension=2.5 must be a number of weights"):
        separable_fraction(3, 2.5)
    with pytest.raises(SpecError, match="dimension=True"):
        capacity(True)
    with pytest.raises(SpecError, match="width=0 must be a number of hidden units"):
        barron_bound(1.0, 0)
    with pytest.raises(SpecError, match="constant=-1 must be a finite number, 0 or more"):
        barron_bound(-1, 10)
