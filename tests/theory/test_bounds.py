"""Bounds against enumeration, each other, and the fraction of runs in which they hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, entropy

from likely.core.errors import SpecError
from likely.theory import (
    binary_kl,
    hoeffding_bound,
    kl_inverse,
    pac_bayes_bound,
    sample_size,
    sauer,
    vc_bound,
    vc_dimension,
)

GRID = list(itertools.product([0.0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1.0], [1e-12, 1e-3, 0.1, 1.0, 10.0]))


def test_binary_kl_is_the_divergence_of_two_coins():
    for a, b in itertools.product([0.0, 0.2, 0.5, 1.0], [0.1, 0.5, 0.9]):
        assert binary_kl(a, b) == pytest.approx(entropy([a, 1 - a], [b, 1 - b]), abs=1e-14)
    assert binary_kl(0.5, 0.0) == binary_kl(0.5, 1.0) == math.inf
    assert binary_kl(0.0, 0.0) == binary_kl(1.0, 1.0) == 0.0


@pytest.mark.parametrize(("q", "c"), GRID)
def test_kl_inverse_inverts_kl(q, c):
    p = kl_inverse(q, c)
    assert q <= p <= 1
    if p < 1 - 1e-12:
        assert binary_kl(q, p) == pytest.approx(c, rel=1e-6, abs=1e-14)
    assert kl_inverse(q, 0.0) == pytest.approx(q, abs=1e-7)


@pytest.mark.parametrize("q", [0.0, 0.05, 0.4])
def test_pinsker_orders_the_forms(q):
    for kl, n in itertools.product([0.0, 5.0, 100.0], [50, 1000, 10**6]):
        tight, quadratic, loose = (pac_bayes_bound(q, kl, n, form=f) for f in ("kl", "quadratic", "mcallester"))
        assert tight <= loose + 1e-12
        assert tight <= quadratic + 1e-12


def test_pac_bayes_without_a_loss_is_closed_form():
    c = (3.0 + math.log(2 * math.sqrt(400) / 0.1)) / 400
    assert pac_bayes_bound(0.0, 3.0, 400, 0.1) == pytest.approx(1 - math.exp(-c), rel=1e-12)


def labellings(family, points):
    return {tuple(chosen) for chosen in family(points)}


def thresholds(points):
    return [points > t for t in [-math.inf, *points]]


def intervals(points):
    ends = [-math.inf, *(points + 0.5)]
    return [(points > a) & (points < b) for a in ends for b in ends]


@pytest.mark.parametrize("n", range(1, 8))
def test_sauer_is_the_growth_function_of_thresholds_and_intervals(n):
    points = np.arange(n)
    assert len(labellings(thresholds, points)) == sauer(n, vc_dimension("thresholds"))
    assert len(labellings(intervals, points)) == sauer(n, vc_dimension("intervals"))


@pytest.mark.parametrize("n", range(1, 9))
def test_sauer_counts_small_subsets_and_bounds_half_planes(n):
    for d in range(10):
        assert sauer(n, d) == sum(math.comb(n, i) for i in range(min(n, d) + 1))
    planes = 2 * sum(math.comb(n - 1, i) for i in range(3))  # Cover's count of labellings by lines in the plane
    assert planes <= sauer(n, vc_dimension("linear", 2))
    assert (planes == 2**n) == (n <= 3)


def test_vc_dimensions():
    assert [vc_dimension(family, 4) for family in ("linear", "homogeneous", "rectangles")] == [5, 4, 8]


def test_bounds_are_their_formulas():
    n, d, delta, seen = 5000, 4, 0.1, 0.07
    log = math.log(4 * sauer(2 * n, d) / delta)
    assert vc_bound(seen, n, d, delta) == pytest.approx(seen + 1 / n + math.sqrt(log / n), rel=1e-12)
    relative = vc_bound(seen, n, d, delta, form="relative")
    assert (relative - seen) / math.sqrt(relative) == pytest.approx(2 * math.sqrt(log / n), rel=1e-10)
    assert hoeffding_bound(seen, n, delta, 10) == pytest.approx(seen + math.sqrt(math.log(100) / (2 * n)), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"hypotheses": 50}, {"dimension": 5}])
def test_sample_size_is_the_fewest_rows(options):
    n = sample_size(0.1, 0.05, **options)

    def gap(rows):
        if "dimension" in options:
            return vc_bound(0.0, rows, options["dimension"], 0.05)
        return hoeffding_bound(0.0, rows, 0.05, options.get("hypotheses", 1))

    assert gap(n) <= 0.1 < gap(n - 1)


@pytest.mark.parametrize("form", ["absolute", "relative"])
def test_the_vc_bound_holds_for_fitted_thresholds(form, seed):
    """x uniform, labels x > ½ flipped with probability 0.1: the error of any threshold t is 0.1 + 0.8 |t − ½|.

    The bounds lie 0.19 ± 0.02 and 0.21 ± 0.03 above the error: a single miss is 7 standard deviations away.
    """
    rng, held = np.random.default_rng(seed), 0
    for _ in range(100):
        x = np.sort(rng.random(300))
        y = (x > 0.5) ^ (rng.random(300) < 0.1)
        wrong = np.concatenate([[0], np.cumsum(y)]) + np.concatenate([np.cumsum(~y[::-1])[::-1], [0]])
        best = int(wrong.argmin())  # the threshold lies before x[best]
        t = x[best] if best < 300 else 1.0
        held += 0.1 + 0.8 * abs(t - 0.5) <= vc_bound(wrong[best] / 300, 300, vc_dimension("thresholds"), form=form)
    assert held >= 95


def test_the_vc_bound_holds_for_fitted_half_spaces(seed):
    """Least-squares classifiers of rotation-invariant rows: the error is the angle to the true direction over π.

    The bound lies 0.32 ± 0.01 above the error: a single miss is 30 standard deviations away.
    """
    rng, held = np.random.default_rng(seed), 0
    truth = np.array([1.0, 0.0, 0.0])
    for _ in range(100):
        X = rng.normal(size=(200, 3))
        y = np.sign(X @ truth)
        w = np.linalg.lstsq(X, y, rcond=None)[0]
        seen = np.mean(np.sign(X @ w) != y)
        error = math.acos(w @ truth / np.linalg.norm(w)) / math.pi
        held += error <= vc_bound(seen, 200, vc_dimension("homogeneous", 3))
    assert held >= 95


def test_hoeffding_holds_at_its_rate():
    """Added up over all means of 50 labels, whose probabilities are known."""
    counts = np.arange(51)
    broken = np.array([hoeffding_bound(count / 50, 50, 0.05) < 0.3 for count in counts])
    assert 0 < binom.pmf(counts, 50, 0.3)[broken].sum() <= 0.05


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: kl_inverse(1.5, 0.1), "q=1.5 must be a mean between 0 and 1"),
        (lambda: kl_inverse(0.5, -0.1), "c=-0.1 must be 0 or more"),
        (lambda: kl_inverse(0.5, math.nan), "c=nan must be 0 or more"),
        (lambda: pac_bayes_bound(-0.1, 1.0, 10), "empirical=-0.1"),
        (lambda: pac_bayes_bound(0.1, -1.0, 10), "kl=-1.0 must be 0 or more"),
        (lambda: pac_bayes_bound(0.1, 1.0, 0), "n=0 must be a number of rows"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, 1.0), "delta=1.0 must be a probability"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, form="catoni"), "form='catoni'"),
        (lambda: vc_bound(0.1, 10, 2, form="sharp"), "form='sharp'"),
        (lambda: vc_bound(0.1, 10, -1), "dimension=-1 must be a VC dimension"),
        (lambda: vc_dimension("trees"), "family='trees' must be one of linear"),
        (lambda: vc_dimension("intervals", 2), "features=2 must be 1"),
        (lambda: hoeffding_bound(2.0, 10), "empirical=2.0"),
        (lambda: hoeffding_bound(0.1, 10, hypotheses=0), "hypotheses=0"),
        (lambda: sample_size(0.0), "gap=0.0 must be above 0"),
        (lambda: sample_size(0.1, dimension=2, hypotheses=3), "dimension or hypotheses, not both"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(SpecError, match=text):
        call()
