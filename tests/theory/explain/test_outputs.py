"""What is explained: functions and modules, the log-odds and means of processes, the pixels of an answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

from likely import Classifier, GaussianProcess
from likely.core.errors import DataError, SpecError
from likely.inference import MAP
from likely.kernels import RBF, Matern
from likely.networks import UNet
from likely.optim import Adam
from likely.theory.explain import integrated_gradients, occlusion, saliency, shapley
from likely.theory.explain.outputs import of_scores


# --- functions --------------------------------------------------------------------------------------------------------
def test_modules_and_classes(table):
    net = nn.Sequential(nn.Linear(4, 3)).double()
    rows = table[0][:4]
    explained = saliency(net, rows, target=[0, 1, 2, 0])
    np.testing.assert_allclose(explained.values, net[0].weight.detach().numpy()[[0, 1, 2, 0]])
    assert explained.target.tolist() == [0, 1, 2, 0]
    assert saliency(net, rows).target.tolist() == net(torch.tensor(rows)).argmax(1).tolist()


def test_a_module_is_explained_as_it_evaluates_and_stays_in_its_mode(table):
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3)).double()
    rows = table[0][:6]
    first, again = (saliency(net, rows) for _ in range(2))
    assert all(part.training for part in net.modules())
    assert int(net[1].num_batches_tracked) == 0
    evaluated = saliency(net.eval(), rows)
    for explained in (first, again):
        np.testing.assert_array_equal(explained.values, evaluated.values)
        np.testing.assert_array_equal(explained.output, evaluated.output)


def test_rows_of_functions_are_checked_at_the_door(table):
    with pytest.raises(DataError, match=r"X must have rows \(n, …\) of finite numbers; found shape \(2,\)"):
        saliency(nn.Linear(2, 2), [1.0, 2.0])
    with pytest.raises(SpecError, match=r"for n rows; for 2 rows it gave \(2, 2, 1\)"):
        saliency(lambda x: x[:, :, None], [[1.0, 2.0], [3.0, 4.0]])


# --- scores -----------------------------------------------------------------------------------------------------------
def test_log_odds_are_those_of_the_probabilities():
    p = torch.tensor([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]], dtype=torch.float64)
    torch.testing.assert_close(of_scores(p.log() + 7.0, "log_odds"), p.log() - (1 - p).log())
    torch.testing.assert_close(of_scores(p.log() - 7.0, "probability"), p)


class Sure:
    """The softmax of x₀, x₁ and maybe x₂ in float32, where 1 − p is 0 from log-odds of 17 on."""

    def fit(self, columns):
        self.classes_ = np.arange(columns)
        return self

    def predict_proba(self, X):
        return softmax(np.asarray(X, np.float32), axis=1)


@pytest.mark.parametrize("explain", [lambda model, X: shapley(model, X, X[:2]), occlusion])
def test_log_odds_of_sure_answers_keep_their_digits(explain):
    """log p − log Σ of the others, in float64 from the inputs themselves."""
    X = np.array([[20.0, 0.0, -1.0], [0.5, 0.0, 0.2], [-3.0, 21.0, 1.0], [0.0, 3.0, 16.0]])
    np.testing.assert_allclose(explain(Sure().fit(2), X[:3, :2]).output, [20.0, 0.5, 24.0], rtol=1e-5)
    others = np.logaddexp([0.0, 0.0, -3.0, 0.0], [-1.0, 0.2, 1.0, 3.0])
    np.testing.assert_allclose(explain(Sure().fit(3), X).output, X.max(1) - others, rtol=1e-5)


@pytest.mark.parametrize("kind", ["numbers", "inducing", "counts", "two labels", "three labels"])
def test_gaussian_processes_have_the_gradients_of_differences(kind, table):
    """Of the mean, or of the log-odds that the integral over f gives; and what is integrated sums to the difference."""
    X, labels, score = (part[:25] for part in table)
    likelihood, y = {
        "numbers": ("normal", score),
        "inducing": ("normal", score),
        "counts": ("poisson", np.digitize(score, [-1.0, 0.0, 1.0, 2.0])),
        "two labels": ("bernoulli", labels == "mid"),
        "three labels": ("categorical", labels),
    }[kind]
    kernel = Matern(2.0, learn=False) if kind == "numbers" else RBF(2.0, learn=False)
    inducing = 12 if kind == "inducing" else None
    model = GaussianProcess(kernel, likelihood, inducing=inducing, random_state=0).fit(X, y)
    rows = X[:4] + 0.1
    explained = saliency(model, rows)

    def f(at):
        if not hasattr(model, "predict_proba"):
            return model.predict(at)
        place = np.searchsorted(model.classes_, explained.target)
        p = model.predict_proba(at)[np.arange(len(at)), place]
        return np.log(p) - np.log1p(-p)

    np.testing.assert_allclose(explained.output, f(rows), rtol=1e-9)
    for j, step in enumerate(1e-5 * np.eye(4)):
        slope = (f(rows + step) - f(rows - step)) / 2e-5
        np.testing.assert_allclose(explained.values[:, j], slope, rtol=1e-4, atol=1e-6)
    whole = integrated_gradients(model, rows, baseline=X.mean(0))
    assert np.abs(whole.gap).max() <= 1e-4 * max(1.0, np.abs(whole.output - whole.baseline).max())
    assert not torch.is_grad_enabled() or not model.predict_dist(rows).mean.requires_grad


def test_far_from_all_rows_classes_are_alike_and_gradients_finite(table):
    """There the covariance of f is k·I, whose eigenvectors have no derivative of their own."""
    model = GaussianProcess(RBF(0.5, learn=False), "categorical").fit(table[0][:20], table[1][:20])
    assert np.isfinite(saliency(model, [[1e3] * 4]).values).all()


# --- positions --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def pixels():
    """A network that says at each pixel whether it is bright, from images of 8 × 8."""
    X = np.random.default_rng(0).normal(size=(12, 1, 8, 8)).astype(np.float32)
    training = MAP(Adam(0.02), epochs=5)
    return X, Classifier(network=UNet((4,)), inference=training, random_state=0).fit(X, (X[:, 0] > 0).astype(int))


def test_one_pixel_or_a_region_is_explained(pixels):
    """By differences of the public answers, in float32; a region is the mean over its pixels."""
    X, model = pixels
    rows, label = X[:2], 1
    explained = saliency(model, rows, label, at=(3, 4))
    assert explained.values.shape == rows.shape

    def f(at):
        log_proba = model.predict_log_proba(at)[:, 3, 4]
        return log_proba[:, 1] - log_proba[:, 0]

    np.testing.assert_allclose(explained.output, f(rows), rtol=1e-4, atol=1e-5)
    for place in ((3, 4), (2, 4), (3, 3)):
        up, down = rows.copy(), rows.copy()
        up[:, 0, *place] += 0.01
        down[:, 0, *place] -= 0.01
        slope = (f(up) - f(down)) / 0.02
        bent = np.abs(slope - explained.values[:, 0, *place]) > 0.03 * np.abs(slope) + 0.03
        assert bent.sum() <= 1  # a ReLU between
    mask = np.zeros((8, 8), bool)
    mask[3, 4] = mask[6, 1] = True
    both = saliency(model, rows, label, at=mask)
    other = saliency(model, rows, label, at=(6, 1))
    np.testing.assert_allclose(both.values, (explained.values + other.values) / 2, rtol=1e-4, atol=1e-5)
    whole = integrated_gradients(model, rows, label, at=mask)
    np.testing.assert_allclose(whole.values.sum((1, 2, 3)), whole.output - whole.baseline, atol=1e-9)
    assert saliency(model, rows, at=mask).target.shape == (2,)


def test_which_pixels_is_asked_for(pixels):
    X, model = pixels
    with pytest.raises(DataError, match=r"labels at positions \(8, 8\); say which of them are explained: at=\(row"):
        saliency(model, X)
    for at in ((8, 0), (1,), np.zeros((8, 8), bool), np.ones((4, 4), bool)):
        with pytest.raises(DataError, match=r"must be a position inside \(8, 8\), such as \(4, 4\), or a mask"):
            saliency(model, X, at=at)
