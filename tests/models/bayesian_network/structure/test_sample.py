"""Counts of families: scores against their formulas, tests of independence against scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2_contingency

from likely.models.bayesian_network.structure import sample as module
from likely.models.bayesian_network.structure.sample import Sample

SIZES = (2, 3, 2, 3)


def rows(seed=0, count=200):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, count) for size in SIZES], 1)
    codes[:, 3] = np.where(rng.random(count) < 0.6, codes[:, 1], codes[:, 3])
    return codes


def sample(codes, weights=None):
    weights = np.ones(len(codes)) if weights is None else weights
    return Sample.of([f"v{place}" for place in range(len(SIZES))], codes, weights, SIZES)


def table(codes, child, parents):
    """Counts by going through all states."""
    counts = np.zeros([*(SIZES[parent] for parent in parents), SIZES[child]])
    for row in codes:
        counts[(*row[list(parents)], row[child])] += 1
    return counts.reshape(-1, SIZES[child])


@pytest.mark.parametrize(("child", "parents"), [(0, ()), (3, (1,)), (2, (0, 1, 3))])
@pytest.mark.parametrize("dense", [1 << 22, 0])
def test_scores_are_their_formulas(monkeypatch, child, parents, dense):
    """Also where only states that were seen are counted."""
    monkeypatch.setattr(module, "DENSE", dense)
    codes = rows()
    counts, own = table(codes, child, parents), sample(codes)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.nansum(counts * np.log(counts / counts.sum(1, keepdims=True)))
    assert own.log_likelihood(child, parents) == pytest.approx(likelihood, rel=1e-10)
    entry = 3.0 / counts.size
    row = entry * counts.shape[1]
    bdeu = (gammaln(row) - gammaln(row + counts.sum(1))).sum() + (gammaln(entry + counts) - gammaln(entry)).sum()
    assert own.bdeu(child, parents, 3.0) == pytest.approx(bdeu, rel=1e-10)


def test_weights_are_repeated_rows():
    codes = rows(1, 60)
    weights = np.random.default_rng(2).integers(0, 4, len(codes)).astype(float)
    weighed, repeated = sample(codes, weights), sample(np.repeat(codes, weights.astype(int), 0))
    assert weighed.total == repeated.total
    assert weighed.bdeu(3, (1, 2), 1.0) == pytest.approx(repeated.bdeu(3, (1, 2), 1.0), rel=1e-12)
    np.testing.assert_allclose(weighed.mutual_information(), repeated.mutual_information(), atol=1e-12)


def test_g_squared_agrees_with_scipy():
    """Summed over the states of the condition; zero rows and columns are not free."""
    codes = rows(3)
    total, freedom = 0.0, 0
    for state in itertools.product(range(2), range(2)):
        part = codes[(codes[:, [0, 2]] == state).all(1)]
        counts = table(part, 3, (1,))
        counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
        if min(counts.shape) > 1:
            told = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
            total, freedom = total + told.statistic, freedom + told.dof
    squared, free = sample(codes).g_squared(1, 3, (0, 2))
    assert (squared, free) == (pytest.approx(total, rel=1e-9), freedom)


def test_mutual_information_is_what_a_parent_gains():
    codes = rows(4)
    own = sample(codes)
    gain = (own.log_likelihood(3, (1,)) - own.log_likelihood(3, ())) / len(codes)
    information = own.mutual_information()
    assert information[1, 3] == information[3, 1] == pytest.approx(gain, rel=1e-10)
    assert math.isclose(information[0, 0], 0.0)
