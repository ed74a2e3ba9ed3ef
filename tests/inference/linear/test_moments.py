from __future__ import annotations

import numpy as np
import pytest

from likely import Regressor
from likely.inference.linear import moments
from likely.inference.linear.design import design_of
from likely.networks import Linear


@pytest.mark.parametrize("rows", [8192, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_moments_are_those_of_all_rows_whatever_the_blocks(bias, weighted, rows, rng, problem_of, monkeypatch):
    X, y, weight = rng.normal(size=(30, 3)) + 5.0, rng.normal(size=30) - 2.0, rng.uniform(0.5, 2.0, size=30)
    problem = problem_of(Regressor(network=Linear(bias)), X, y, sample_weight=weight if weighted else None)
    monkeypatch.setattr(moments, "ROWS", rows)
    sums = moments.moments_of(design_of(problem).regression(0))
    weight = weight if weighted else np.ones(30)
    x_mean, y_mean = (np.average(a, axis=0, weights=weight) if bias else 0 * a[0] for a in (X, y))
    apart, target = X - x_mean, y - y_mean
    np.testing.assert_allclose(sums.gram, apart.T @ (weight[:, None] * apart), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.cross, apart.T @ (weight * target), rtol=1e-9, atol=1e-10)
    assert sums.spread == pytest.approx(weight @ target**2)
    assert sums.total == pytest.approx(weight.sum())
    np.testing.assert_allclose(sums.x_mean, x_mean + 0 * X[0], atol=1e-12)


def test_moments_of_all_outputs_together_are_those_of_each(rng, problem_of, monkeypatch):
    X, Y = rng.normal(size=(30, 3)) + 5.0, rng.normal(size=(30, 4)) - 2.0
    monkeypatch.setattr(moments, "ROWS", 7)
    design = design_of(problem_of(Regressor(), X, Y))
    together = moments.moments_together(design)
    for output, sums in enumerate(together):
        alone = moments.moments_of(design.regression(output))
        np.testing.assert_allclose(sums.gram, alone.gram, rtol=1e-10)
        np.testing.assert_allclose(sums.cross, alone.cross, rtol=1e-9, atol=1e-10)
        assert sums.spread == pytest.approx(alone.spread)
        assert (sums.y_mean, sums.total) == (pytest.approx(alone.y_mean), alone.total)
    assert together[0].gram is together[1].gram
    holes = Y.copy()
    holes[3, 1] = np.nan
    assert moments.moments_together(design_of(problem_of(Regressor(), X, holes))) is None
