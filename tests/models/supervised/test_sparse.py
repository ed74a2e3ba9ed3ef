"""Sparse matrices of SciPy at the door: the same numbers as dense rows, and nothing as large as those."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from scipy import sparse

import likely
from likely import PCA, Classifier, GaussianProcess, NaiveBayes, Regressor, priors
from likely.core.errors import DataError
from likely.inference import MAP, Newton
from likely.likelihoods import Bernoulli, Normal, Poisson
from likely.models.mixtures import sparse_classes
from likely.networks import MLP, ConvNet
from likely.optim import Adam


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sparse.random_array((120, 12), density=0.2, rng=rng, format="csr")
    X.data = np.ceil(X.data * 4)
    weight = rng.normal(size=12)
    eta = X @ weight
    return X, (0.1 * eta + rng.logistic(size=120) > 0).astype(int), eta + rng.normal(size=120)


MODELS = {
    "exact": lambda X, label, y: Regressor().fit(X, y).predict(X),
    "newton": lambda X, label, y: Classifier().fit(X, label).predict_proba(X),
    "l1": lambda X, label, y: Classifier(prior=priors.Laplace(1.0), inference=Newton()).fit(X, label).predict_proba(X),
    "counts": lambda X, label, y: Regressor(Poisson()).fit(X, label, sample_weight=label + 1.0).predict(X),
    "mlp": lambda X, label, y: (
        Classifier(network=MLP((4,)), inference=MAP(Adam(0.01), epochs=3), standardise=False, random_state=0)
        .fit(X, label)
        .predict_proba(X)
    ),
    "naive Bayes": lambda X, label, y: NaiveBayes(Poisson()).fit(X, label).predict_proba(X),
}


@pytest.mark.parametrize("name", MODELS)
def test_sparse_rows_give_the_numbers_of_dense_ones(data, name):
    X, *targets = data
    np.testing.assert_allclose(MODELS[name](X, *targets), MODELS[name](X.toarray(), *targets), rtol=1e-5, atol=1e-5)


def test_every_format_is_the_same_matrix(data, tmp_path):
    """CSR, CSC, COO with entries twice, as matrices and arrays; integers; and a model from a file."""
    X, label, _ = data
    model = Classifier().fit(X, label)
    expected = model.predict_proba(X)
    model.save(tmp_path / "m.likely")
    twice = sparse.coo_array((np.tile(X.data / 2, 2), np.tile(X.tocoo().coords, 2)), shape=X.shape)
    forms = [X.tocsc(), sparse.csr_matrix(X), sparse.coo_matrix(X), twice, X.astype(np.int64), X.tolil()]
    for form in forms:
        np.testing.assert_allclose(likely.load(tmp_path / "m.likely").predict_proba(form), expected, rtol=1e-10)
    assert twice.nnz == 2 * X.nnz  # the caller's own is as it was


@pytest.mark.parametrize("likelihood", [Poisson(), Bernoulli(), Normal()])
def test_naive_bayes_takes_sparse_rows_a_few_at_a_time(monkeypatch, data, likelihood):
    """Sums over blocks are the sums over all rows; rows without a label or a weight do not count."""
    X, label, _ = data
    X = X if likelihood != Bernoulli() else (X > 0).astype(float)
    y = np.where(np.arange(120) % 7 == 0, None, label)
    weight = np.arange(120) % 3
    whole = NaiveBayes(likelihood).fit(X.toarray(), y, sample_weight=weight)
    monkeypatch.setattr(sparse_classes, "DENSE", 12 * 25)
    blocks = NaiveBayes(likelihood).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(blocks.predict_proba(X), whole.predict_proba(X.toarray()), rtol=1e-6, atol=1e-9)


def test_nothing_as_large_as_the_dense_matrix_is_made():
    """20,000 × 1,000,000 with 5 entries a row would be 80 GB in single precision, and a batch of it 2 GB."""
    rng, width = np.random.default_rng(0), 1_000_000
    columns = rng.integers(0, width, (20_000, 5))
    X = sparse.csr_array((np.ones(100_000), columns.ravel(), np.arange(0, 100_001, 5)), shape=(20_000, width))
    y = (columns[:, 0] % 2).astype(int)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = Classifier(prior=priors.Normal(1.0), inference=MAP(Adam(0.1), epochs=1, batch_size=5000), random_state=0)
    model.fit(X, y).predict_proba(X)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # in kB
    assert grown < 1_000_000
    assert model.n_features_in_ == width


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda X, y: PCA(2).fit(X), r"X is sparse, 120 × 12, and PCA takes dense rows; X.toarray\(\) .* 0.0115 MB"),
        (lambda X, y: GaussianProcess().fit(X, y), "GaussianProcess takes dense rows"),
        (lambda X, y: Classifier(network=ConvNet()).fit(X, y), "X has sparse rows; ConvNet takes images"),
        (lambda X, y: Regressor().fit(X.toarray(), y).predict(X), "X has sparse rows; the model was fitted on"),
        (lambda X, y: Regressor().fit(X, y).predict(X[:, :5]), "X has 5 columns; the model was fitted on 12"),
        (lambda X, y: Regressor().fit(X * np.inf, y), "X contains infinity"),
        (lambda X, y: Regressor().fit(X.astype(complex), y), "where numbers are needed"),
    ],
)
def test_what_cannot_be_sparse_is_refused(data, ask, message):
    X, label, _ = data
    with pytest.raises(DataError, match=message), np.errstate(invalid="ignore"):
        ask(X, label)


def test_a_model_of_sparse_rows_takes_dense_ones(data):
    X, label, y = data
    for model in (Regressor().fit(X, y), Classifier(network=MLP((4,)), inference=MAP(epochs=1)).fit(X, label)):
        np.testing.assert_allclose(model.predict(X.toarray()), model.predict(X), rtol=1e-6)
