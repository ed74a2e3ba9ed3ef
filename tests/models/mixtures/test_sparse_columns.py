"""Naive Bayes of the entries of sparse rows: what the dense rows say, in time and memory of the entries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.naive_bayes import BernoulliNB

from likely import NaiveBayes
from likely.core.errors import DataError
from likely.likelihoods import Bernoulli, Categorical, NegativeBinomial, Normal, Poisson
from likely.models.mixtures.sparse_columns import as_table, by_entries, emission_of, moments_of, rows_of


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson(), Categorical(4)])
@pytest.mark.parametrize("smoothing", [1.0, 0.0])
def test_entries_of_sparse_rows_say_what_the_dense_rows_say(likelihood, smoothing):
    """Also with weights, missing labels, columns without an entry, and values that a class never has (log p = −∞)."""
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.15, size=(200, 30)).clip(max=1 if isinstance(likelihood, Bernoulli) else 3).astype(float)
    dense[:, 7], dense[:, 8] = 0, 1
    y, weight = rng.integers(0, 3, 200).astype(float), rng.uniform(0.5, 2, 200)
    y[:5] = np.nan
    told, known = (
        NaiveBayes(likelihood, smoothing=smoothing).fit(rows, y, sample_weight=weight)
        for rows in (csr_array(dense), dense)
    )
    np.testing.assert_allclose(told.eta_, known.eta_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(told.totals_[:, 0], known.totals_[:, 0], rtol=1e-12)
    other = dense[:50].copy()
    other[:, 8] = rng.integers(0, 2, 50)
    for rows in (dense, other):
        np.testing.assert_allclose(
            told.joint_log_prob(csr_array(rows)), known.joint_log_prob(rows), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_array_equal(told.predict(csr_array(rows)), known.predict(rows))


def test_sparse_rows_agree_with_scikit_learn_in_little_memory():
    """200,000 columns: rows × columns in float64 would be 4.8 GB."""
    rng = np.random.default_rng(0)
    rows, columns, count = 3000, 200_000, 15_000
    place = rng.integers(0, rows, count), rng.integers(0, columns, count)
    X = csr_array((np.ones(count), place), shape=(rows, columns))
    X.data[:] = 1
    y = rng.integers(0, 2, rows)
    tracemalloc.start()
    model = NaiveBayes(Bernoulli()).fit(X, y)
    ours = model.predict_log_proba(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e8
    np.testing.assert_allclose(ours, BernoulliNB().fit(X, y).predict_log_proba(X), rtol=1e-6, atol=1e-6)


def test_an_entry_outside_the_support_is_named_by_column_and_row():
    X = csr_array(([1.0, 2.5, 1.0], ([0, 3, 2], [1, 4, 0])), shape=(5, 6))
    with pytest.raises(DataError, match=r"column '4' of X has .* \(2\.5 at row 3\); Poisson needs"):
        NaiveBayes(Poisson()).fit(X, [0, 1, 0, 1, 0])
    model = NaiveBayes(Poisson()).fit(abs(X).ceil(), [0, 1, 0, 1, 0])
    with pytest.raises(DataError, match=r"column '4' of X has .* \(2\.5 at row 3\)"):
        model.predict(X)
    with pytest.raises(DataError, match=r"X has 5 features, but NaiveBayes is expecting 6"):
        model.predict(X[:, :5])


def test_entries_alone_do_for_counts_and_labels_with_sums():
    assert by_entries(emission_of(Bernoulli(), 3, None, 0.0))
    for other in (Normal(), NegativeBinomial(), Categorical(), [Poisson(), Bernoulli()]):
        assert emission_of(other, 3, None, 0.0) is None
    assert emission_of(Poisson(), 2, ["size", "age"], 0.0).parts[0].names == (
        "column 'size' of X",
        "column 'age' of X",
    )


def test_an_entry_held_twice_adds_up_and_the_rows_given_stay():
    X = csr_array(([1.0, 2.0, 0.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert rows_of(X).toarray().tolist() == [[0.0, 3.0], [0.0, 0.0]]
    assert X.data.tolist() == [1.0, 2.0, 0.0]
    assert rows_of(csr_array([[0.0, np.nan]])) is None


def test_moments_are_those_of_the_dense_columns():
    rng = np.random.default_rng(0)
    dense = rng.normal(1.0, 1.0, size=(50, 4)) * (rng.uniform(size=(50, 4)) < 0.3)
    dense[:, 3] = np.abs(dense[:, 3]) + 1  # no entry is 0
    dense[7, 1] = np.nan
    expected = np.nanmin(dense, 0), np.nanmax(dense, 0), np.nanmean(dense, 0)
    np.testing.assert_allclose(moments_of(csr_array(dense)), expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr_array((0, 3)), r"X is empty: its shape is \(0, 3\)"),
        (csr_array(np.eye(2) * 1j), r"sparse rows \(n, d\) of real numbers; found shape \(2, 2\) of complex128"),
        (csr_array(np.eye(2)).tocoo().reshape(4), r"found shape \(4,\) of float64"),
    ],
)
def test_other_sparse_things_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        as_table(X)
    with pytest.raises(DataError, match=message):
        NaiveBayes(Poisson()).fit(X, [0] * X.shape[0])
