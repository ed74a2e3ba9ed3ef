"""Signals change geometrically with depth by the factor that theory gives; input gradients shatter, and skips hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.data.rows import Ragged
from likely.inference import MAP
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.theory.gradient_health import gradient_autocorrelation, gradient_health


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(64, 32))


def scaled(factor, depth=20, width=128):
    """He's hidden weights times a factor, no biases."""
    torch.manual_seed(0)
    net = MLP((width,) * depth, bias=False).build((32,), 1).double()
    with torch.no_grad():
        for layer in net[2:-1]:
            if isinstance(layer, nn.Linear):
                layer.weight.mul_(factor)
    return net


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(0.5, "vanishing"), (0.6, "vanishing"), (1.0, "level"), (1.7, "exploding"), (2.0, "exploding")],
)
def test_signals_change_by_the_same_factor_in_every_layer(X, factor, verdict):
    """With var(W) = factor² · 2/width, ReLU layers multiply activations and gradients by the factor."""
    report = gradient_health(scaled(factor), X)
    assert report.verdict == verdict
    assert report.gradient_growth == pytest.approx(factor, rel=0.05)
    assert report.activation_growth == pytest.approx(factor, rel=0.05)
    hidden = np.array([layer.gradient for layer in report.layers[:-1]])
    steps = hidden[:-1] / hidden[1:]
    np.testing.assert_allclose(steps, factor, rtol=0.3)


def test_the_numbers_are_those_of_backpropagation(X):
    """δ₁ = φ′(z₁) ⊙ W₂ᵀ δ₂ and ∂L/∂W₁ = Σ δ₁ xᵀ, written out for one hidden layer and squared error."""
    torch.manual_seed(0)
    net = MLP((5,), activation="tanh").build((32,), 2).double()
    x, y = torch.as_tensor(X), torch.randn(64, 2, dtype=torch.float64)
    first, last = gradient_health(net, X, y).layers
    with torch.no_grad():
        h = torch.tanh(net[0](x))
        eta = net[2](h)
        delta2 = eta - y
        delta1 = (1 - h**2) * (delta2 @ net[2].weight)
    assert first.activation == pytest.approx(float(h.square().mean().sqrt()), rel=1e-10)
    assert last.activation == pytest.approx(float(eta.square().mean().sqrt()), rel=1e-10)
    assert last.gradient == pytest.approx(float(delta2.square().sum(1).mean().sqrt()), rel=1e-10)
    assert first.gradient == pytest.approx(float(delta1.square().sum(1).mean().sqrt()), rel=1e-10)
    weight = torch.cat([delta1.T @ x, delta1.sum(0)[:, None]], 1) / 64
    assert first.weight_gradient == pytest.approx(float(weight.norm()), rel=1e-10)
    assert (first.name, first.units, last.name, last.units) == ("0", 5, "2", 2)


def test_sigmoids_make_gradients_vanish_by_a_quarter_or_more(X):
    """φ′ ≤ ¼, and orthogonal weights keep lengths: δ shrinks by ¼ or more in each layer."""
    torch.manual_seed(0)
    net = MLP((32,) * 12, activation="sigmoid").build((32,), 1).double()
    for layer in net[2:-1]:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)
    hidden = [layer.gradient for layer in gradient_health(net, X).layers[:-1]]
    assert all(before <= 0.25 * after * (1 + 1e-9) for before, after in itertools.pairwise(hidden))


def test_a_unit_with_a_hugely_negative_bias_is_dead(X):
    net = MLP((8, 8)).build((32,), 1)
    with torch.no_grad():
        net[0].bias.fill_(9.0)
        net[0].bias[3] = -1e6
        net[2].bias.fill_(-1e6)
    first, second, last = gradient_health(net, X).layers
    assert first.dead == 1 / 8
    assert second.dead == last.dead == 1.0
    assert first.weight_gradient == 0.0  # nothing passes through a layer that is off
    assert gradient_health(net, X).verdict == "vanishing"


def test_live_networks_have_no_dead_units(X):
    assert all(layer.dead == 0 for layer in gradient_health(MLP((32, 32), activation="tanh"), X).layers)


def arccos_autocorrelation(start, stop, depth, points=33):
    """ρ of infinitely wide ReLU networks: Π κ₀ over layers, where angles follow κ₁ (both of the arc-cosine kernels)."""
    line = start + np.linspace(0, 1, points)[:, None] * (stop - start)
    unit = line / np.linalg.norm(line, axis=1, keepdims=True)
    cosine = np.clip(unit @ unit.T, -1, 1)
    likeness = np.ones_like(cosine)
    for _ in range(depth):
        angle = np.arccos(cosine)
        likeness = likeness * (1 - angle / np.pi)
        cosine = np.clip((np.sin(angle) + (np.pi - angle) * cosine) / np.pi, -1, 1)
    return np.array([np.diagonal(likeness, lag).mean() for lag in range(points // 2 + 1)])


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_autocorrelation_of_wide_networks_is_that_of_arc_cosine_kernels(depth):
    """Mean over 6 networks of width 512 on 256 inputs."""
    generator = np.random.default_rng(0)
    start, stop = generator.normal(size=(2, 256))
    spec = MLP((512,) * depth, bias=False)
    correlations = [
        gradient_autocorrelation(spec, start, stop, points=33, random_state=seed).values for seed in range(6)
    ]
    np.testing.assert_allclose(np.mean(correlations, 0), arccos_autocorrelation(start, stop, depth), atol=0.05)


def test_gradients_shatter_with_depth_and_skips_hold_them():
    """Means over 6 networks, at a 16th of the line."""
    generator = np.random.default_rng(0)
    start, stop = 2 * generator.normal(size=(2, 16))

    def likeness(depth, residual=None):
        spec = MLP((48,) * depth, residual=residual, bias=False)
        correlations = [gradient_autocorrelation(spec, start, stop, points=65, random_state=seed) for seed in range(6)]
        return np.mean([one.values[4] for one in correlations])

    plain = [likeness(depth) for depth in (1, 4, 16, 48)]
    assert plain[0] > plain[1] > plain[2] > plain[3]
    for residual in ("add", "zero", "preactivation"):
        held = likeness(48, residual)
        assert held > 0.85
        assert 1 - held < 0.4 * (1 - plain[3])


def test_the_line_is_that_of_most_variance():
    """Along x₁, where f = |x₁|: the gradient is −1 and then 1, so ρ(lag) = 1 − 2 · (fraction of pairs across 0)."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        net[0].bias.fill_(1e-3)
        net[2].weight.fill_(1.0)
        net[2].bias.zero_()
    X = np.array([[-3.0, 0.1], [3.0, 0.1], [-3.0, -0.1], [3.0, -0.1]])
    shattered = gradient_health(net, X).shattered
    lag = np.arange(1, 129)
    # in the middle point both units are on, and the gradient is 0
    expected = (257 - lag - 2 * (lag - 1) - 2) / (257 - lag) / (256 / 257)
    np.testing.assert_allclose(shattered.values[1:], expected, atol=1e-9)
    np.testing.assert_allclose(shattered.lags[1:], lag / 256)
    assert shattered.values[0] == pytest.approx(1.0)
    assert shattered.length == shattered.lags[np.flatnonzero(shattered.values < 0.5)[0]]


def test_fitted_models_are_judged_by_their_likelihood():
    """At the optimum of logistic regression, the gradient at the weights is 0."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 3))
    y = np.where(X[:, 0] + generator.normal(size=80) > 0, "yes", "no")
    model = Classifier().fit(X, y)
    (layer,) = gradient_health(model, X, y).layers
    assert layer.weight_gradient < 1e-6
    p = model.predict_proba(X)[:, 1]
    assert layer.gradient == pytest.approx(np.sqrt(np.square(p - (y == "yes")).mean()), rel=1e-6)
    before = gradient_health(model, X).layers[0].gradient
    assert before == pytest.approx(1.0)  # without y, the slope of η itself


def test_fitted_networks_are_left_as_they_are():
    X, y = torch.randn(30, 2), torch.randn(30)
    model = Regressor(Normal(1.0), MLP((4,), dropout=0.5), inference=MAP(epochs=2), random_state=0).fit(X, y)
    before = model.predict(X)
    report = gradient_health(model, X, y)
    assert [layer.name for layer in report.layers] == ["0", "3"]
    assert not any(p.requires_grad for p in model.posterior_.module.parameters())
    np.testing.assert_array_equal(model.predict(X), before)
    assert not model.posterior_.module.network[0]._forward_hooks


class _PerStep(nn.Module):
    """An affine map of every step of sequences of any lengths."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)

    def forward(self, x):
        return self.inner(x.values if isinstance(x, Ragged) else x)


def test_sequences_of_any_lengths_have_layers_and_no_line():
    report = gradient_health(_PerStep(), [np.ones((3, 2)), np.zeros((5, 2))])
    assert [layer.name for layer in report.layers] == ["inner"]
    assert report.shattered is None


def test_the_report_reads_as_a_table(X):
    text = str(gradient_health(MLP((16, 16)), X)).splitlines()
    assert text[0].split() == ["layer", "units", "activation", "gradient", "∂L/∂W", "dead"]
    assert [line.split()[:2] for line in text[1:4]] == [["0", "16"], ["2", "16"], ["4", "1"]]
    assert text[-1].startswith("gradients are level: a factor of")


def test_errors_say_what_would_do(X):
    with pytest.raises(DataError, match="X has 1 row; two or more are needed"):
        gradient_health(MLP((4,)), X[:1])
    with pytest.raises(DataError, match=r"y has shape \(3,\); the network gives \(64, 1\)"):
        gradient_health(MLP((4,)), X, np.zeros(3))
    with pytest.raises(SpecError, match="no layer with a matrix of weights"):
        gradient_health(nn.Tanh(), X)
    with pytest.raises(DataError, match="start and stop must be two different points"):
        gradient_autocorrelation(nn.Linear(2, 1), np.zeros(2), np.zeros(2))
    with pytest.raises(DataError, match="points=2 must be 3 or more"):
        gradient_autocorrelation(nn.Linear(2, 1), np.zeros(2), np.ones(2), points=2)
    model = Regressor().fit(X, X[:, 0])
    with pytest.raises(DataError, match="y has missing targets"):
        gradient_health(model, X, np.where(X[:, 0] > 0, np.nan, 1.0))
