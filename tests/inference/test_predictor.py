"""η = [offset + unit · f(z(x)), shared], and the passes by hand have the value and gradients of automatic ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.inference.predictor import Predictor, is_linear
from likely.networks.layers.dropout import Dropout
from likely.networks.layers.standardise import Standardise

X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def network(out=2):
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, out)).double()


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_eta_is_the_equation_written_out():
    inner, inputs = network(), Standardise(double(1.0, 0.0, -1.0), double(2.0, 1.0, 0.5), None)
    offset, unit, shared = double(3.0, -1.0), double(2.0, 10.0), double(0.7)
    eta = Predictor(inner, shared, offset, unit, inputs=inputs)(X)
    z = (X - double(1.0, 0.0, -1.0)) / double(2.0, 1.0, 0.5)
    torch.testing.assert_close(eta[:, :2], offset + unit * inner(z))
    torch.testing.assert_close(eta[:, 2], shared.expand(6))


def test_positions_unfold_and_flat_inputs_are_flattened():
    inner = network(out=6)
    eta = Predictor(inner, positions=(3,), flatten=True)(X.reshape(6, 3, 1))
    torch.testing.assert_close(eta, inner(X).reshape(6, 3, 2))


@pytest.mark.parametrize("positions", [(), (2,)], ids=["plain", "positions"])
def test_passes_by_hand_have_the_gradients_of_autograd(positions):
    shared = double(0.7) if not positions else torch.full((2, 1), 0.7, dtype=torch.float64)
    predictor = Predictor(network(4), shared, double(0.5), double(3.0), positions=positions)
    named = dict(predictor.named_parameters())
    gradients = {name: torch.zeros_like(value) for name, value in named.items()}
    passes = predictor.passes({k: v.detach() for k, v in named.items()}, gradients, stacked=False)
    eta = predictor(X)
    own, beside = passes.forward(X)
    torch.testing.assert_close(torch.cat([own, beside.expand(*own.shape[:-1], 1)], -1), eta.detach())
    seed = torch.randn(eta.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    passes.backward(seed[..., :-1].clone(), seed[..., -1:].sum_to_size(beside.shape))
    expected = torch.autograd.grad((eta * seed).sum(), list(named.values()))
    for (name, ours), automatic in zip(gradients.items(), expected, strict=True):
        torch.testing.assert_close(ours, automatic, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("positions", [(), (2,)], ids=["plain", "positions"])
@pytest.mark.parametrize("bend", [None, (1 / 3, 0.0, 1 / 3)], ids=["straight", "bent"])
def test_gradients_in_the_inputs_by_hand_are_those_of_autograd(positions, bend):
    shared = double(0.7) if not positions else torch.full((2, 1), 0.7, dtype=torch.float64)
    layers = nn.Linear(3, 5), nn.ReLU(), Dropout(0.5), nn.Linear(5, 5), nn.GELU(), nn.Linear(5, 4)
    inner = nn.Sequential(*layers).double()
    inputs = Standardise(double(1.0, 0.0, -1.0), double(2.0, 1.0, 0.1), None if bend is None else double(*bend))
    predictor = Predictor(inner, shared, double(0.5), double(3.0), positions, flatten=True, inputs=inputs).eval()
    passes = predictor.input_passes()
    for rows in (X.reshape(6, 3, 1), X[:4].reshape(4, 1, 3), X.reshape(6, 3, 1) + 1):  # memory is used again
        point = rows.clone().requires_grad_()
        eta = predictor(point)
        torch.testing.assert_close(passes.forward(rows), eta.detach())
        seed = torch.randn(eta.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        (expected,) = torch.autograd.grad((eta * seed).sum(), point)
        torch.testing.assert_close(passes.backward(seed.clone()), expected)


def test_a_network_with_other_layers_has_no_passes_of_its_own():
    assert Predictor(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))).eval().input_passes() is None
    assert Predictor(network()).train().input_passes() is None  # dropout would be drawn
    assert Predictor(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))).passes({}, {}, stacked=False) is None


def test_linear_means_one_plain_linear_layer():
    class Own(nn.Linear):
        pass

    assert is_linear(nn.Linear(2, 1))
    assert not is_linear(Own(2, 1))
    assert Predictor(nn.Linear(2, 1)).linear is not None
    assert Predictor(network()).linear is None
