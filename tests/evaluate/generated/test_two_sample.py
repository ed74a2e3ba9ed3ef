"""The classifier test and its exact null."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstest, norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from likely.core.errors import DataError
from likely.evaluate import two_sample
from likely.evaluate.generated.two_sample import _judged


def test_the_null_is_that_of_all_ways_to_choose_labels():
    said = np.array([True, True, False, True, False, False])
    outcomes = []
    for chosen in itertools.combinations(range(6), 3):
        true = np.isin(np.arange(6), chosen)
        outcomes.append((_judged(said, true).accuracy, _judged(said, true).p_value))
    accuracies = np.array([accuracy for accuracy, _ in outcomes])
    for accuracy, p_value in outcomes:
        assert p_value == pytest.approx((accuracies >= accuracy - 1e-12).mean())
    assert _judged(said, said).standard_error == pytest.approx(accuracies.std())


def test_shifted_normals_are_told_apart_as_often_as_the_best_rule_can(seed):
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1)) + 1.0]
    result = two_sample(*rows, classifier=LinearDiscriminantAnalysis(), random_state=0)
    # Φ(½) is the best accuracy; 5 standard errors of 4000 answers: false alarms below 1e-6
    assert abs(result.accuracy - norm.cdf(0.5)) < 5 * 0.5 / np.sqrt(4000) + 0.002
    assert result.p_value < 1e-6


def test_p_values_of_equal_samples_are_spread_evenly(seed):
    rng = np.random.default_rng(seed)
    p_values = []
    for _ in range(60):
        rows = rng.normal(size=(2, 60, 2))
        p_values.append(two_sample(*rows, classifier=LinearDiscriminantAnalysis(), random_state=rng).p_value)
    # p-values of discrete tests are at least uniform; the one-sided KS test has false alarms below 1e-6
    assert kstest(p_values, "uniform", alternative="greater").pvalue > 1e-6


def test_tables_with_text_and_gaps_are_compared(seed):
    rng = np.random.default_rng(seed)
    colour = [("red", "blue", None)[index] for index in rng.integers(3, size=600)]
    table = pl.DataFrame({"size": rng.normal(size=600), "colour": colour})
    red = table.with_columns(pl.lit("red").alias("colour"))
    assert two_sample(table[:300], red[300:]).accuracy > 0.6
    assert two_sample(table[:300], table[300:]).p_value > 1e-6


def test_samples_of_different_kinds_are_refused():
    with pytest.raises(DataError, match="must both be tables, or both arrays"):
        two_sample(pl.DataFrame({"a": [1.0, 2.0]}), np.zeros((2, 1)))
    with pytest.raises(DataError, match="real has 2 numbers per row, generated has 3"):
        two_sample(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(DataError, match="generated has no column 'b'"):
        two_sample(pl.DataFrame({"b": [1.0, 2.0]}), pl.DataFrame({"a": [1.0, 2.0]}))
