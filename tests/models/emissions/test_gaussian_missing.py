"""Gaussians with missing values, row by row from the blocks of their covariances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from likely.models.emissions import GaussianEmission
from likely.models.emissions.gaussian_missing import (
    accumulate_missing,
    expected_missing,
    log_prob_missing,
    patterns,
)

NAN = np.nan
X = np.array([[0.5, NAN, 1.0], [NAN, NAN, NAN], [1.0, -1.0, 2.0], [NAN, 0.3, NAN], [2.0, NAN, -1.0]])
MEAN = np.array([[0.0, 1.0, 2.0], [-1.0, 0.5, 0.0]])
ROOTS = np.array([[[1.0, 0, 0], [0.5, 1, 0], [-0.3, 0.2, 0.8]], [[2.0, 0, 0], [-0.5, 0.5, 0], [1.0, 1.0, 1.0]]])
COVARIANCE = ROOTS @ ROOTS.swapaxes(1, 2)


def conditioned(row, mean, covariance):
    """E[x | what is seen], and its covariance."""
    gone, seen = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
    expected, rest = np.where(np.isnan(row), mean, row), np.zeros((3, 3))
    gain = covariance[np.ix_(gone, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    expected[gone] += gain @ (row[seen] - mean[seen])
    rest[np.ix_(gone, gone)] = covariance[np.ix_(gone, gone)] - gain @ covariance[np.ix_(seen, gone)]
    return expected, rest


def params(tied=False):
    own = COVARIANCE[:1] if tied else COVARIANCE
    given = {"mean": torch.from_numpy(MEAN)[None], "covariance": torch.from_numpy(own)[None]}
    return GaussianEmission(3, "tied" if tied else "full").complete(given)


def test_patterns_part_the_rows():
    parts = list(patterns(torch.from_numpy(X)))
    assert sorted(row for rows, _, _ in parts for row in rows.tolist()) == list(range(len(X)))
    for rows, seen, gone in parts:
        assert sorted([*seen.tolist(), *gone.tolist()]) == [0, 1, 2]
        own = torch.from_numpy(X)[rows].isnan()
        assert not own[:, seen].any()
        assert own[:, gone].all()


def test_the_density_is_that_of_what_is_seen():
    values = log_prob_missing(params(), torch.from_numpy(X))
    for (row, k), value in np.ndenumerate(values[:, 0].numpy()):
        seen = ~np.isnan(X[row])
        block = COVARIANCE[k][np.ix_(seen, seen)]
        expected = multivariate_normal(MEAN[k][seen], block).logpdf(X[row][seen]) if seen.any() else 0.0
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_expectations_are_regressions_on_what_is_seen():
    fraction = np.random.default_rng(0).dirichlet(np.ones(2), len(X))
    one = {name: value[0] for name, value in params().items()}
    values = expected_missing(one, torch.from_numpy(X), torch.from_numpy(fraction)).numpy()
    expected = [
        sum(fraction[i, k] * conditioned(row, MEAN[k], COVARIANCE[k])[0] for k in range(2)) for i, row in enumerate(X)
    ]
    np.testing.assert_allclose(values, np.where(np.isnan(X), expected, 0.0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("tied", [False, True], ids=["full", "tied"])
def test_sums_are_those_of_expected_rows_and_their_squares(tied):
    weight = np.random.default_rng(1).random((len(X), 2))
    given = params(tied)
    totals = GaussianEmission(3, "tied" if tied else "full").zeros(1, 2)
    accumulate_missing(totals, given, torch.from_numpy(X), torch.from_numpy(weight)[:, None])
    second = np.zeros((2, 3, 3))
    for k in range(2):
        owner = 0 if tied else k
        whiten = given["whiten"][0, owner].numpy()
        first = np.zeros(3)
        for i, row in enumerate(X):
            expected, rest = conditioned(row, MEAN[k], COVARIANCE[owner])
            z = (expected - MEAN[k]) @ whiten
            first += weight[i, k] * z
            second[owner] += weight[i, k] * (np.outer(z, z) + whiten.T @ rest @ whiten)
        np.testing.assert_allclose(totals["first"][0, k], first, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(totals["count"][0, :, 0], weight.sum(0), rtol=1e-12)
    np.testing.assert_allclose(totals["second"][0], second[:1] if tied else second, rtol=1e-10, atol=1e-12)
