"""Activations: the formulas, and the gain that keeps variance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special

from likely.core.errors import SpecError
from likely.networks.layers import ACTIVATIONS, activation, gain

FORMULAS = {
    "identity": lambda x: x,
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x * special.ndtr(x),
    "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + abs(x)),
    "sin": np.sin,
    "erf": special.erf,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_formula(name):
    x = np.linspace(-6, 6, 101)
    np.testing.assert_allclose(activation(name)(torch.tensor(x)).numpy(), FORMULAS[name](x), atol=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_it_has_no_parameters(name):
    assert not list(activation(name).parameters())


@pytest.mark.parametrize(
    ("name", "square"),
    [("identity", 1), ("relu", 2), ("leaky_relu", 2 / (1 + 0.01**2)), ("selu", 1), ("gelu", 2), ("silu", 2)],
)
def test_known_gains(name, square):
    assert gain(name) ** 2 == pytest.approx(square, rel=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gain_lets_no_signal_of_variance_one_or_more_grow(name):
    z = np.linspace(-12, 12, 20_001)
    density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    for scale in (1.0, 1.5, 3.0, 10.0, 100.0):
        after = gain(name) ** 2 * (density * FORMULAS[name](scale * z) ** 2).sum()
        assert after <= scale**2 * (1 + 1e-6)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(SpecError, match="Unknown activation 'swsh'; known: identity, sigmoid, tanh, relu"):
        activation("swsh")
