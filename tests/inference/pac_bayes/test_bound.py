"""The kl inverse and the three forms of the PAC-Bayes bound, by their defining equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from likely.core.errors import SpecError
from likely.inference.pac_bayes.bound import binary_kl, kl_inverse, pac_bayes_bound


@pytest.mark.parametrize("a", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("b", [0.0, 0.1, 0.5, 1.0])
def test_binary_kl_is_the_divergence_of_two_coins(a, b):
    assert binary_kl(a, b) == pytest.approx(rel_entr(a, b) + rel_entr(1 - a, 1 - b), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("c", [1e-6, 0.01, 0.3, 2.0])
def test_the_inverse_is_the_root_above_q(q, c):
    """kl(q ‖ p) grows from 0 at p = q to ∞ at 1, so that there is one root."""
    root = kl_inverse(q, c)
    expected = brentq(lambda p: binary_kl(q, p) - c, q, 1 - 1e-15, xtol=1e-15) if q else 1 - math.exp(-c)
    assert root == pytest.approx(expected, rel=1e-7)
    assert root >= q
    assert binary_kl(q, root) >= c * (1 - 1e-9)


def test_ends_of_the_inverse():
    assert kl_inverse(0.3, 0.0) == pytest.approx(0.3, rel=1e-7)
    assert kl_inverse(1.0, 0.5) == 1.0
    assert kl_inverse(0.3, 1e6) == pytest.approx(1.0, rel=1e-12)


def test_forms_are_ordered_and_fall_with_rows():
    """Pinsker: the kl form is the tightest. With more rows all go to the empirical loss."""
    for empirical in (0.01, 0.2, 0.45):
        before = dict.fromkeys(("kl", "quadratic", "mcallester"), math.inf)
        for n in (100, 1000, 100_000):
            bounds = {form: pac_bayes_bound(empirical, 5.0, n, form=form) for form in before}
            assert empirical < bounds["kl"] <= min(bounds.values())
            assert all(bounds[form] < before[form] for form in before)
            before = bounds
        assert before["kl"] == pytest.approx(empirical, abs=0.01)


def test_the_bound_of_no_errors_has_a_closed_form():
    """R̂ = 0: kl(0 ‖ p) = −log(1 − p), so p = 1 − exp(−c)."""
    c = (3.0 + math.log(2 * math.sqrt(500) / 0.01)) / 500
    assert pac_bayes_bound(0.0, 3.0, 500, delta=0.01) == pytest.approx(-np.expm1(-c), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1.5, 1.0, 10), "empirical=1.5 must be a mean loss"),
        ((0.1, -1.0, 10), "kl=-1.0 must be 0 or more"),
        ((0.1, 1.0, 0), "n=0"),
        ((0.1, 1.0, 10, 1.0), "delta=1.0 must be"),
    ],
)
def test_arguments_outside_their_ranges_are_named(arguments, text):
    with pytest.raises(SpecError, match=text):
        pac_bayes_bound(*arguments)
