"""The Jacobian of a module against autograd, one number at a time."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.networks import jacobian
from likely.networks.jacobian import Jacobian


class Looped(nn.Module):
    """Looks at its own numbers, which cannot be vectorised."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.unused = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return torch.tanh(self.linear(x)) if float(self.linear.bias.detach().sum()) > -1e9 else x


def smooth():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def by_autograd(module, x):
    parameters = dict(module.named_parameters())
    rows = []
    for number in module(x).flatten():
        parts = torch.autograd.grad(number, list(parameters.values()), retain_graph=True, allow_unused=True)
        rows.append([torch.zeros_like(v) if g is None else g for g, v in zip(parts, parameters.values(), strict=True)])
    return {name: torch.stack([row[i] for row in rows]) for i, name in enumerate(parameters)}


@pytest.mark.parametrize("make", [smooth, Looped], ids=["vmap", "one by one"])
@pytest.mark.parametrize("block", [1 << 22, 60])
def test_derivatives_are_those_of_autograd(make, block, monkeypatch):
    monkeypatch.setattr(jacobian, "BLOCK", block)
    torch.manual_seed(0)
    module, x = make().double(), torch.randn(7, 3, dtype=torch.float64)
    expected = by_autograd(module, x)
    parts = list(Jacobian(module).blocks(x))
    assert (len(parts) > 1) == (block == 60)
    torch.testing.assert_close(torch.cat([eta for _, eta, _ in parts]), module(x).detach())
    assert [index for part, _, _ in parts for index in range(7)[part]] == list(range(7))
    for name, value in expected.items():
        joined = torch.cat([derivatives[name] for _, _, derivatives in parts]).flatten(0, 1)
        torch.testing.assert_close(joined, value)


def test_other_parameters_and_only_some_of_them():
    torch.manual_seed(0)
    module, x = smooth().double(), torch.randn(5, 3, dtype=torch.float64)
    derivatives = Jacobian(module, ("2.weight",))
    moved = torch.randn(2, 4, dtype=torch.float64)
    derivative = derivatives.of(x, {"2.weight": moved})
    eta = derivatives.eta(x, {"2.weight": moved})
    assert list(derivative) == ["2.weight"]
    with torch.no_grad():
        module[2].weight.copy_(moved)
    torch.testing.assert_close(eta, module(x).detach())
    torch.testing.assert_close(derivative["2.weight"].flatten(0, 1), by_autograd(module, x)["2.weight"])
