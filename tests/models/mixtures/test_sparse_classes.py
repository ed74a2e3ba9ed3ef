"""Naive Bayes of sparse rows of any kind: the model of the dense ones, however many become dense at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from likely import NaiveBayes
from likely.core.errors import DataError, SpecError
from likely.likelihoods import Bernoulli, Binomial, Categorical, NegativeBinomial, Normal, Poisson
from likely.models.mixtures import sparse_classes

RNG = np.random.default_rng(0)
DENSE = RNG.poisson([0.2, 0.5, 2.0, 0.1], size=(90, 4)).clip(max=6).astype(float)
DENSE[:60, 0] = 0  # what the last rows show, the first ones do not
DENSE[60:63] = [1, 2, 7, 1]  # a column that is constant in a class has a variance of 1e-9: sums lose all but 7 digits
Y, WEIGHT = np.arange(90) % 3, RNG.uniform(0, 2, 90)
LIKELIHOODS = [Normal(), Poisson(), Categorical(), Binomial(20), [Normal(), Poisson(), Poisson(), Normal()]]


def twice(X):
    """Each entry as two halves, and one that is 0."""
    one = sparse.coo_array(X)
    rows, columns = np.concatenate([one.row, one.row, [0]]), np.concatenate([one.col, one.col, [0]])
    return sparse.coo_array((np.concatenate([one.data / 2, one.data / 2, [0.0]]), (rows, columns)), shape=X.shape)


KINDS = [sparse.csr_array, sparse.csc_matrix, twice, sparse.lil_array, lambda X: sparse.csr_array(X.astype(int))]


@pytest.fixture
def few(monkeypatch):
    """Seven rows become dense at a time."""
    monkeypatch.setattr(sparse_classes, "DENSE", 30)


def assert_same(told, known):
    assert told.classes_.tolist() == known.classes_.tolist()
    np.testing.assert_allclose(told.eta_, known.eta_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(told.joint_log_prob(sparse.csr_array(DENSE)), known.joint_log_prob(DENSE), rtol=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("kind", KINDS, ids=["csr", "csc", "coo twice", "lil", "int"])
def test_blocks_of_sparse_rows_are_the_dense_rows(few, likelihood, kind):
    told = NaiveBayes(likelihood).fit(kind(DENSE), Y, WEIGHT)
    assert_same(told, NaiveBayes(likelihood).fit(DENSE, Y, WEIGHT))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_missing_entries_and_labels_do_not_count(few, likelihood):
    X, y = DENSE.copy(), Y.astype(float)
    X[3, 2], y[:4] = np.nan, np.nan
    told = NaiveBayes(likelihood).fit(sparse.csr_array(X), y)
    assert_same(told, NaiveBayes(likelihood).fit(X, y))


@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Categorical(8)])
def test_sparse_rows_may_come_in_pieces(few, likelihood):
    told = NaiveBayes(likelihood)
    for rows in (slice(0, 20), slice(20, 60), slice(60, 90)):
        told.partial_fit(sparse.csc_array(DENSE[rows]), Y[rows], [0, 1, 2], WEIGHT[rows])
    assert_same(told, NaiveBayes(likelihood).fit(DENSE, Y, WEIGHT))
    told.partial_fit(DENSE, Y)
    with pytest.raises(DataError, match=r"classes has .*, but the first call said"):
        told.partial_fit(sparse.csr_array(DENSE), Y, [0, 1])
    with pytest.raises(DataError, match="classes must be passed on the first call"):
        NaiveBayes(likelihood).partial_fit(sparse.csr_array(DENSE), Y)


def test_what_blocks_of_rows_cannot_tell_is_said(few):
    with pytest.raises(SpecError, match=r"X of this size cannot add rows to NegativeBinomial\(\), which .* give dense"):
        NaiveBayes(NegativeBinomial()).fit(sparse.csr_array(DENSE), Y)
    wrong = DENSE.copy()
    wrong[47, 2] = 2.5
    with pytest.raises(DataError, match=r"column '2' of X has .* \(2\.5 at row 47\)"):
        NaiveBayes(Categorical()).fit(sparse.csr_array(wrong), Y)
    with pytest.raises(DataError, match=r"column '1' of X has .* Bernoulli"):
        NaiveBayes(Bernoulli()).fit(sparse.csr_array(np.minimum(DENSE, [1, 9, 1, 1])), Y)
