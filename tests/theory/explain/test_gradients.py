"""Gradients are those of differences; what is integrated sums to what it should; noise leaves a line as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from likely import Classifier, GaussianProcess, KMeans
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.inference import MAP, Ensemble, Laplace, MCDropout
from likely.networks import LSTM, MLP
from likely.optim import Adam
from likely.priors import Normal
from likely.theory.explain import gradients, integrated_gradients, saliency, smooth_grad


def log_odds(model, X, labels):
    """By the logarithms of the others' probabilities: 1 − p of a p near 1 would be rounded away."""
    own = model.classes_ == np.broadcast_to(labels, len(X))[:, None]
    log_p = model.predict_log_proba(X).astype(float)
    return log_p[own] - np.logaddexp.reduce(log_p[~own].reshape(len(X), -1), axis=1)


def probability(model, X, labels):
    return model.predict_proba(X)[np.arange(len(X)), np.searchsorted(model.classes_, labels)]


@pytest.mark.parametrize("name", ["net", "ensemble"])
def test_saliency_is_the_derivative_of_the_log_odds_in_the_units_of_x(name, table, request):
    """A difference of f on the public door is the mean of the derivative between, wherever a ReLU bends.

    The door's float32 leaves three digits; an ensemble's f is that of its average.
    """
    model, X = request.getfixturevalue(name), table[0][:10]
    explained = saliency(model, X, "mid")
    np.testing.assert_allclose(explained.output, log_odds(model, X, "mid"), rtol=1e-5, atol=1e-4)
    between = (np.arange(400) + 0.5) / 200 - 1
    for j, step in enumerate(np.diag([0.2, 0.5, 0.1, 0.2])):
        slope = (log_odds(model, X + step, "mid") - log_odds(model, X - step, "mid")) / (2 * step[j])
        along = saliency(model, (X[:, None] + between[:, None] * step).reshape(-1, 4), "mid").values[:, j]
        np.testing.assert_allclose(along.reshape(10, 400).mean(1), slope, atol=0.01 * np.abs(along).max())


def test_a_line_has_its_coefficients(linear, table):
    X = table[0][:5]
    np.testing.assert_allclose(saliency(linear, X).values, np.tile(linear.coef_, (5, 1)), rtol=1e-9)
    noisy = smooth_grad(linear, X, random_state=0)
    np.testing.assert_allclose(noisy.values, np.tile(linear.coef_, (5, 1)), rtol=1e-9)
    assert noisy.standard_error.max() < 1e-12
    integrated = integrated_gradients(linear, X, baseline=table[0].mean(0))
    np.testing.assert_allclose(integrated.values, linear.coef_ * (X - table[0].mean(0)), atol=1e-9)


@pytest.mark.parametrize("of", ["log_odds", "probability"])
@pytest.mark.parametrize("name", ["net", "ensemble"])
def test_integrated_gradients_sum_to_the_difference(name, of, table, request):
    model, X = request.getfixturevalue(name), table[0][:24]
    explained = integrated_gradients(model, X, baseline=X.mean(0), of=of)
    assert explained.target.tolist() == model.predict(X).tolist()
    difference = explained.output - explained.baseline
    np.testing.assert_allclose(explained.values.sum(1), difference, atol=1e-9 * max(1, np.abs(difference).max()))
    odds = log_odds if of == "log_odds" else probability
    np.testing.assert_allclose(explained.output, odds(model, X, explained.target), rtol=1e-5, atol=1e-4)


def test_integrated_gradients_of_images_sum_to_the_difference(convolutional, stripes):
    explained = integrated_gradients(convolutional, stripes[0][:6])
    assert explained.values.shape == (6, 1, 12, 12)
    np.testing.assert_allclose(explained.gap, 0, atol=1e-9)


def test_more_kinks_than_parts_of_the_way_are_no_jumps(monkeypatch):
    """What they leave is given out, so that the sum is exact; no warning says otherwise (warnings are errors here)."""
    monkeypatch.setattr(gradients, "MOST", 20)

    def folded(x):
        return (40 * x).sin().abs().sum(1) + x[:, 0] * x[:, 1]

    explained = integrated_gradients(folded, [[1.0, 2.0], [3.0, -1.0]])
    np.testing.assert_allclose(explained.gap, 0, atol=1e-12)


def test_a_kink_beside_a_flat_part_loses_nothing():
    """f is flat up to its kink: where that lies just behind the middle of a part, the part's gradient is 0."""
    rows = np.linspace(0.9, 1.1, 2000)[:, None]
    explained = integrated_gradients(lambda x: (x[:, 0] - 0.5).clamp_min(0), rows)
    np.testing.assert_allclose(explained.values, rows - 0.5, atol=1e-12)


@pytest.mark.parametrize("kind", ["dropout", "dropout in an ensemble", "Laplace"])
def test_posteriors_that_draw_are_drawn_once_for_an_explanation(kind, table):
    """Each mask is one function of x, and the points of a Laplace posterior move with x: no jump, and nothing lost."""
    X, y, _ = table
    training = MAP(Adam(0.03), epochs=10)
    inference = {
        "dropout": MCDropout(10, by=training),
        "dropout in an ensemble": MCDropout(5, by=Ensemble(2, by=training)),
        "Laplace": Laplace(by=training),
    }[kind]
    network = MLP((8,), activation="tanh", dropout=0.0 if kind == "Laplace" else 0.2)
    prior = Normal(1.0, biases=Normal(1.0))
    model = Classifier(network=network, prior=prior, inference=inference, random_state=0).fit(X, y)
    explained = integrated_gradients(model, X[:6], baseline=X.mean(0))
    np.testing.assert_allclose(explained.gap, 0, atol=1e-9)
    alone = integrated_gradients(model, X[2:3], baseline=X.mean(0), target=explained.target[2])
    np.testing.assert_allclose(alone.values, explained.values[2:3], atol=2e-3 * np.abs(explained.values[2]).max())
    np.testing.assert_allclose(saliency(model, X[:4]).values[:1], saliency(model, X[:1]).values, rtol=1e-3, atol=1e-5)


def test_a_product_is_shared_equally():
    """f = x₀x₁ from 0: the way is (t x₀, t x₁), each integral x₀x₁/2. f = x₀³ has all of it."""
    rows = torch.tensor([[2.0, 3.0], [-1.0, 4.0]], dtype=torch.float64)
    shares = integrated_gradients(lambda x: x[:, 0] * x[:, 1], rows)
    np.testing.assert_allclose(shares.values, [[3.0, 3.0], [-2.0, -2.0]], atol=1e-9)
    cubes = integrated_gradients(lambda x: x[:, 0] ** 3, rows, tol=1e-6)
    np.testing.assert_allclose(cubes.values, [[8.0, 0.0], [-1.0, 0.0]], atol=1e-4)


def test_smooth_grad_of_a_parabola_is_its_derivative(seed):
    """E 2(x + ε) = 2x; the estimate is within five of its standard errors (false alarms below 1e-5)."""
    x = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])
    explained = smooth_grad(lambda rows: (rows**2).sum(1), x, draws=200, random_state=seed)
    assert (np.abs(explained.values - 2 * x) < 5 * explained.standard_error).all()


def test_jumps_and_noise_are_told():
    def steps(x):
        return torch.where(x[:, 0] > 0.3, 1.0, 0.0)

    with pytest.warns(ApproximationWarning, match="Row 0: f jumps by 1 on the way, .*; no input has a share of that"):
        flat = integrated_gradients(lambda x: steps(x) + 0 * x.sum(1), np.ones((1, 2)))
    np.testing.assert_array_equal(flat.values, 0)
    with pytest.warns(ApproximationWarning, match="f jumps by 1 on the way, .*shared as the gradients beside it are"):
        sloped = integrated_gradients(lambda x: steps(x) + x.sum(1), np.ones((1, 2)))
    np.testing.assert_allclose(sloped.values, [[1.5, 1.5]], atol=1e-6)
    with pytest.warns(ApproximationWarning, match="differs by .* when it is asked again: f is drawn at random"):
        integrated_gradients(lambda x: x.sum(1) * torch.rand(len(x)).to(x), np.ones((1, 2)))


def test_bad_input_is_named(net, table):
    X = table[0]
    with pytest.raises(DataError, match=r"target='huge' is not one of the classes high, low, mid"):
        saliency(net, X, "huge")
    with pytest.raises(DataError, match=r"target has shape \(3,\); one is needed, or one for each of 80 rows"):
        saliency(net, X, ["low"] * 3)
    with pytest.raises(NotFittedError, match="Classifier instance is not fitted"):
        saliency(Classifier(), X)
    with pytest.raises(SpecError, match="of='mean' must be log_odds or probability"):
        saliency(net, X, of="mean")
    with pytest.raises(DataError, match=r"baseline is \(3,\); a number, a row \(4,\) or rows"):
        integrated_gradients(net, X, baseline=np.zeros(3))
    with pytest.raises(NotFittedError, match="GaussianProcess instance is not fitted"):
        saliency(GaussianProcess(), X)
    with pytest.raises(SpecError, match=r"model is a KMeans; explanations by gradients take .* occlusion and"):
        saliency(KMeans(2), X)
    with pytest.raises(SpecError, match="at is for models that answer at positions, such as pixels; this Classifier"):
        saliency(net, X, at=(1, 1))
    with pytest.raises(SpecError, match="no gradients; use occlusion or shapley"):
        saliency(lambda x: x.detach().sum(1), X)
    with pytest.raises(SpecError, match=r"model must give numbers \(n,\) or \(n, k\)"):
        saliency(lambda x: x.reshape(2, 2, -1), X)
    with pytest.raises(SpecError, match="noise=0 must be positive"):
        smooth_grad(net, X, noise=0)
    with pytest.raises(SpecError, match="tol=2 must lie between"):
        integrated_gradients(net, X, tol=2)
    texts = Classifier(network=LSTM(hidden=4), inference=MAP(epochs=1), random_state=0).fit(
        ["a b", "b a"] * 3, [0, 1] * 3
    )
    with pytest.raises(DataError, match="X has sequences; explanations by gradients take rows of one shape"):
        saliency(texts, ["a b"])
    tokens = Classifier(
        network="transformer(width=4, heads=1, layers=1, tokens=5)", inference=MAP(epochs=1), random_state=0
    ).fit(np.array([[1, 2], [3, 4]] * 3), [0, 1] * 3)
    with pytest.raises(DataError, match="inputs are tokens"):
        saliency(tokens, np.array([[1, 2]]))


def test_frames(net, linear, table):
    explained = saliency(linear, table[0][:3])
    frame = explained.to_frame(["a", "b", "c", "d"])
    assert frame.shape == (12, 4)
    assert frame["attribution"].to_list() == explained.values.ravel().tolist()
    assert explained.importance().shape == (4,)
    with pytest.raises(DataError, match="names has 2 entries; there are 4 columns"):
        explained.to_frame(["a", "b"])
