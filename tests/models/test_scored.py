"""Models as functions of their rows: what they tell by scores is what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import GaussianProcess, KernelRidge, NaiveBayes, Perceptron, SupportVector
from likely.kernels import RBF
from likely.likelihoods import Bernoulli, Gamma, Normal, Poisson
from likely.models.kernel.votes import decision
from likely.models.scored import Scored

RNG = np.random.default_rng(0)
POSITIVE = 1e-3  # as Gamma needs them: rows that are asked about are drawn from far around X
LABELS = np.array(["a", "b", "c"])[np.arange(60) % 3]
X = RNG.normal(size=(60, 3)) + 2.0 * np.eye(3)[np.arange(60) % 3] + 5.0
NUMBERS, PAIR = np.round(X[:, 0] * X[:, 1]), LABELS != "c"
MODELS = {
    "naive Bayes": (NaiveBayes([Normal(), Gamma(), Normal()]), X, LABELS),
    "support vectors": (SupportVector(probability=False), X, LABELS),
    "support vectors of two classes": (SupportVector("linear", random_state=0), X[PAIR], LABELS[PAIR]),
    "support vectors of numbers": (SupportVector(epsilon=0.1), X, NUMBERS),
    "perceptron": (Perceptron(max_iter=50, random_state=0), X[PAIR] * [1, -1, 1], LABELS[PAIR]),
    "kernel ridge": (KernelRidge(), X, NUMBERS),
    "kernel ridge of several numbers": (KernelRidge(), X, X[:, :2]),
    "process": (GaussianProcess(100.0 * RBF(3.0), learn=False), X, NUMBERS),
    "process of counts": (GaussianProcess(RBF(3.0), Poisson(), learn=False), X, NUMBERS),
    "process of labels": (GaussianProcess(RBF(3.0), "categorical", learn=False), X, LABELS),
    "process of two labels": (GaussianProcess(RBF(3.0), Bernoulli(), learn=False), X[PAIR], LABELS[PAIR]),
}


@pytest.fixture(params=MODELS)
def model(request):
    own, rows, targets = MODELS[request.param]
    return own.fit(rows, targets)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_scores_are_what_the_model_says(model):
    rows = X[RNG.integers(0, 60, 200)] + RNG.exponential(size=(200, 1)) * RNG.uniform(-1, 1, size=(200, 3))
    rows = rows.clip(POSITIVE) if isinstance(model, NaiveBayes) else rows
    scores = model._scores(model._points(rows))
    if model._score == "mean":
        np.testing.assert_allclose(scores, model.predict(rows).reshape(200, -1), rtol=1e-12, atol=1e-12)
    elif model._score == "log_prob":
        np.testing.assert_allclose(scores.softmax(1), model.predict_proba(rows), rtol=1e-9, atol=1e-12)
    else:
        own = scores[:, 0] if len(model.classes_) == 2 else decision(scores, len(model.classes_))
        np.testing.assert_allclose(own, model.decision_function(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_scores_have_gradients_in_the_rows_and_in_nothing_else(model):
    assert not model._scores(model._points(X[:3])).requires_grad
    x = model._points(X[:3]).requires_grad_()
    (gradient,) = torch.autograd.grad(model._scores(x).sum(), x)
    assert bool(gradient.isfinite().all())


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_a_model_that_keeps_rows_knows_their_range(model):
    kept = model._span is not None
    assert kept == (not isinstance(model, NaiveBayes | Perceptron))
    if kept:
        assert X.min() <= model._span[0] < model._span[1] <= X.max()


def test_what_a_model_of_scores_must_tell():
    class _Silent(Scored):
        pass

    for ask in (lambda: _Silent()._score, lambda: _Silent()._points(X), lambda: _Silent()._scores(torch.ones(1, 1))):
        with pytest.raises(NotImplementedError, match="_Silent must"):
            ask()
