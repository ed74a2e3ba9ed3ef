"""Initialisation: the variances, orthogonality, and signals that neither die nor explode over 50 layers."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.networks.layers import INITS, activation, gain, glorot, he, he_average, initialise, lecun, orthogonal

DEPTH = 50


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("rule", "variance"),
    [(lecun, 1 / 300), (glorot, 2 / 700), (he, 2 / 300), (he_average, 4 / 700)],
)
def test_variance(rule, variance, seed):
    """Of 120 000 draws mean and variance are within 5 standard errors, at most 5·√(2/120 000) = 2 % (a normal's) of the
    variance: three facts, a false alarm in 2 of 10⁶ seeds.
    """
    torch.manual_seed(seed)
    weight = rule(torch.empty(400, 300, dtype=torch.float64))
    assert weight.mean().abs() < 5 * (variance / weight.numel()) ** 0.5
    assert weight.var() == pytest.approx(variance, rel=0.021)
    scaled = rule(torch.empty(400, 300, dtype=torch.float64), 3.0)
    assert scaled.var() == pytest.approx(9 * variance / (2 if rule in (he, he_average) else 1), rel=0.021)


def test_kernels_of_convolutions_count_as_inputs(seed):
    """The variance of 51 200 draws is within 5.6 of its standard errors: a false alarm in 2 of 10⁸ seeds."""
    torch.manual_seed(seed)
    weight = he(torch.empty(64, 32, 5, 5, dtype=torch.float64))
    assert weight.var() == pytest.approx(2 / (32 * 25), rel=0.035)


def test_glorot_is_uniform_within_its_bound():
    weight = glorot(torch.empty(400, 300))
    bound = (6 / 700) ** 0.5
    assert 0.999 * bound < weight.abs().max() <= bound


def test_orthogonal_keeps_lengths_and_angles():
    square = orthogonal(torch.empty(40, 40, dtype=torch.float64), 1.5)
    identity = torch.eye(40, dtype=torch.float64)
    torch.testing.assert_close(square.T @ square, 1.5**2 * identity)
    torch.testing.assert_close(square @ square.T, 1.5**2 * identity)
    wide = orthogonal(torch.empty(40, 10, dtype=torch.float64))
    torch.testing.assert_close(wide.T @ wide, 4 * identity[:10, :10])
    narrow = orthogonal(torch.empty(10, 40, dtype=torch.float64))
    torch.testing.assert_close(narrow @ narrow.T, identity[:10, :10])


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("lecun", "selu"),
        ("glorot", "selu"),
        ("orthogonal", "identity"),
        ("orthogonal", "selu"),
        *[(init, name) for init in ("he", "he_average", "orthogonal") for name in ("tanh", "sin", "softsign")],
    ],
)
def test_variance_is_kept_over_fifty_layers(init, name):
    """Variance 1 attracts, so that it stays within 20 % of 1 in a single network of width 512."""
    function = activation(name)
    x = torch.randn(64, 512)
    for _ in range(DEPTH):
        x = function(x) @ initialise(torch.empty(512, 512), init, name).T
        assert 0.8 < x.square().mean() < 1.2


@pytest.mark.parametrize(("init", "name"), [("lecun", "identity"), ("he", "relu"), ("he", "leaky_relu")])
def test_expected_variance_is_kept_over_fifty_layers(init, name, seed):
    """Piecewise linear networks let variance wander, by about √(5/width) a layer: the growth is a mean over networks.

    Each layer's growth has mean 1 exactly. That of 20 000 networks of width 8 over 50 layers has the standard error
    √(5/8/10⁶) = 0.0008, its 50th power 0.04: 20 % is 5 standard errors (false alarm below 1 in 10⁶).
    """
    torch.manual_seed(seed)
    width, networks = 8, 20_000
    function = activation(name)
    growths = []
    x = torch.randn(networks, width, 1)
    for _ in range(DEPTH):
        weight = initialise(torch.empty(networks * width, width), init, name).reshape(networks, width, width)
        after = weight @ function(x)
        moment = x.square().mean(1, keepdim=True)
        growths.append((after.square().mean(1, keepdim=True) / moment)[moment > 0].mean())
        x = after / moment.clamp_min(1e-30).sqrt()  # the growth of a homogeneous layer does not depend on scale
    cumulative = torch.stack(growths).cumprod(0)
    assert ((cumulative > 0.8) & (cumulative < 1.2)).all()


def test_the_wrong_pair_dies():
    x = torch.randn(64, 256)
    for _ in range(DEPTH):
        x = activation("relu")(x) @ lecun(torch.empty(256, 256)).T
    assert x.square().mean() < 1e-8


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_lecun_and_glorot_do_not_look_at_the_activation(name):
    for init in INITS:
        torch.manual_seed(3)
        plain = initialise(torch.empty(6, 6), init)
        torch.manual_seed(3)
        other = initialise(torch.empty(6, 6), init, name)
        torch.testing.assert_close(other, plain * (1.0 if init in ("lecun", "glorot") else gain(name)))


def test_errors_say_what_is_known():
    with pytest.raises(SpecError, match="Unknown init 'xavier'; known: lecun, glorot, he, he_average, orthogonal"):
        initialise(torch.empty(2, 2), "xavier")
    with pytest.raises(SpecError, match=r"weight must have two axes or more.*found shape \(3,\)"):
        he(torch.empty(3))
