"""Dense networks by hand: the same output and gradients as automatic differentiation, for every activation."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call

from likely.networks.layers import ACTIVATIONS, Dropout
from likely.networks.layers.dense import DensePasses, dense_layers


def passes_of(network, members, frozen=()):
    """The passes, their parameters (members, …) and the memory of the gradients."""
    lead = (members,) if members > 1 else ()
    shapes = {name: value.shape for name, value in network.named_parameters()}
    parameters = {name: torch.randn(*lead, *shape, dtype=torch.float64) for name, shape in shapes.items()}
    gradients = {name: torch.full_like(value, 9.0) for name, value in parameters.items() if name not in frozen}
    return DensePasses(dense_layers(network), parameters, gradients, members > 1), parameters, gradients


def by_autograd(network, parameters, x, score, members):
    leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}

    def one(own, rows):
        return functional_call(network, own, (rows,))

    out = torch.vmap(one)(leaves, x) if members > 1 else one(leaves, x)
    grads = torch.autograd.grad((out * score).sum(), list(leaves.values()))
    return out.detach(), dict(zip(leaves, grads, strict=True))


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_equal_those_of_autograd(name, members):
    """Activations stand first, twice in a row and last, rows have positions, and batches change their size."""
    make = ACTIVATIONS[name]
    layers = make(), nn.Linear(4, 6), make(), make(), nn.Linear(6, 5, bias=False), make(), nn.Linear(5, 2), make()
    network = nn.Sequential(*layers).double()
    passes, parameters, gradients = passes_of(network, members)
    for shape in ((7, 3, 4), (5, 4), (7, 3, 4)):
        x = torch.randn(*((members,) if members > 1 else ()), *shape, dtype=torch.float64)
        before = x.clone()
        out = passes.forward(x).clone()
        score = torch.randn_like(out)
        expected, wanted = by_autograd(network, parameters, x, score, members)
        passes.backward(score.clone())
        assert torch.equal(x, before)
        torch.testing.assert_close(out, expected)
        for key, gradient in gradients.items():
            torch.testing.assert_close(gradient, wanted[key])


@pytest.mark.parametrize("frozen", [("0.weight", "0.bias"), ("2.weight",), ("0.weight", "0.bias", "2.weight")], ids=len)
def test_frozen_parameters_get_no_gradient_and_others_theirs(frozen):
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    passes, parameters, gradients = passes_of(network, 1, frozen)
    x, score = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    _, wanted = by_autograd(network, parameters, x, score, 1)
    passes.forward(x)
    passes.backward(score)
    assert set(gradients) == set(wanted) - set(frozen)
    for key, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[key])


def test_options_of_activations_are_honoured():
    layers = nn.LeakyReLU(0.3), nn.ELU(0.5), nn.GELU("tanh"), nn.Softplus(2.0, 5.0)
    for layer in layers:
        network = nn.Sequential(nn.Linear(3, 4), layer, nn.Linear(4, 1)).double()
        passes, parameters, gradients = passes_of(network, 1)
        x, score = 3 * torch.randn(20, 3, dtype=torch.float64), torch.randn(20, 1, dtype=torch.float64)
        expected, wanted = by_autograd(network, parameters, x, score, 1)
        torch.testing.assert_close(passes.forward(x), expected)
        passes.backward(score)
        for key, gradient in gradients.items():
            torch.testing.assert_close(gradient, wanted[key])


def test_dropout_drops_the_same_units_in_both_passes(seed):
    """With identity weights the output shows the mask, and the gradient of W is scoreᵀ(x ⊙ mask).

    The fraction dropped of 2,000 is within 5 standard errors, but for 1 of 10⁶ seeds.
    """
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Identity(), Dropout(0.25), nn.Linear(50, 50, bias=False)).double()
    weight = torch.eye(50, dtype=torch.float64)
    gradient = torch.zeros_like(weight)
    passes = DensePasses(dense_layers(network), {"2.weight": weight}, {"2.weight": gradient})
    x = torch.ones(40, 50, dtype=torch.float64)
    dropped = passes.forward(x)
    assert set(dropped.unique().tolist()) == {0.0, 4 / 3}
    assert abs(float((dropped == 0).double().mean()) - 0.25) < 5 * (0.25 * 0.75 / 2000) ** 0.5
    score = torch.randn(40, 50, dtype=torch.float64)
    passes.backward(score.clone())
    torch.testing.assert_close(gradient, score.T @ dropped)


class _Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def _shared():
    layer = nn.Linear(3, 3)
    return nn.Sequential(layer, nn.ReLU(), layer)


def _tied():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    return nn.Sequential(first, second)


def _hooked():
    network = nn.Sequential(nn.Linear(3, 3))
    network[0].register_forward_hook(lambda *_: None)
    return network


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Sequential(_Doubled(3, 3)),
        lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
        lambda: nn.Sequential(nn.ReLU()),
        _shared,
        _tied,
        _hooked,
    ],
)
def test_networks_that_compute_something_else_are_not_dense(build):
    assert dense_layers(build()) is None
