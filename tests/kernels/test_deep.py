from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.kernels import RBF, Deep, Kernel, Linear, White
from likely.networks import MLP
from likely.networks import Linear as LinearNetwork
from likely.networks.base import as_network

X = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 3)))


def test_it_is_the_kernel_of_the_features():
    module = Deep(MLP((8,)), 2.0 * RBF(0.5) + White(0.1), features=4).build(X)
    features = module.network(X)
    assert features.shape == (30, 4)
    expected = (2.0 * RBF(0.5) + White(0.1)).matrix(features)
    torch.testing.assert_close(module(X), expected)
    torch.testing.assert_close(module(X, X[:4]), (2.0 * RBF(0.5)).matrix(features, features[:4]))


def test_a_linear_network_under_a_linear_kernel_is_a_linear_kernel():
    """g(x) = Wx + b: k = (Wx + b)·(Wx′ + b)."""
    module = Deep(LinearNetwork(), Linear(), features=2).build(X)
    layer = next(inner for inner in module.network.modules() if isinstance(inner, nn.Linear))
    seen = X @ layer.weight.mT + layer.bias
    torch.testing.assert_close(module(X), seen @ seen.mT)


def test_weights_are_learned_with_the_numbers():
    """The likelihood of targets that depend on one column rises by more than the numbers of the kernel alone allow."""
    y = torch.sin(3 * X[:, 0])

    def negative_evidence(module):
        K = module(X) + 0.01 * torch.eye(len(X), dtype=torch.float64)
        factor = torch.linalg.cholesky(K)
        return 0.5 * y @ torch.cholesky_solve(y[:, None], factor)[:, 0] + factor.diagonal().log().sum()

    def trained(kernel):
        module = kernel.build(X)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
        for _ in range(150):
            optimizer.zero_grad()
            loss = negative_evidence(module)
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    assert trained(Deep(MLP((16,), activation="tanh"), RBF())) < trained(RBF()) - 5


def test_random_state_says_which_weights_it_starts_from():
    assert torch.equal(Deep(MLP((8,))).matrix(X), Deep(MLP((8,))).matrix(X))
    assert not torch.equal(Deep(MLP((8,))).matrix(X), Deep(MLP((8,)), random_state=1).matrix(X))


def test_the_module_keeps_the_weights_and_the_spec_the_numbers():
    module = Deep(MLP((8,)), RBF(0.5)).build(X)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    again = module.spec().build(X)
    assert module.spec().kernel != RBF(0.5)
    assert not torch.equal(again(X), module(X))
    again.load_state_dict(module.state_dict())
    assert torch.equal(again(X), module(X))


def test_rows_of_any_shape_and_a_module_of_ones_own():
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 1, 5, 5)))
    network = as_network(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(18, 3)))
    K = Deep(network, RBF(), features=3).matrix(images)
    assert K.shape == (6, 6)
    assert float(torch.linalg.eigvalsh(K)[0]) > -1e-12
    with pytest.raises(SpecError, match="cannot be written to a file"):
        Deep(network).to_json()


def test_it_is_read_from_text():
    text = "deep(network=mlp([8], activation=tanh), kernel=scaled(matern(0.5), 2.0), features=3)"
    assert Kernel.parse(text) == Deep(MLP((8,), activation="tanh"), 2.0 * Kernel.parse("matern(0.5)"), features=3)


@pytest.mark.parametrize(
    ("network", "layer", "why"),
    [
        (MLP((8,), dropout=0.1), "Dropout", "draws at random"),
        (MLP((8,), norm="batch"), "BatchNorm", "depends on the other rows"),
        (MLP((8,), norm="virtual"), "ReferenceBatch", "depends on the other rows"),
    ],
)
def test_networks_whose_answer_for_a_row_is_not_one_are_refused(network, layer, why):
    with pytest.raises(SpecError, match=rf"Deep: the network has a {layer} layer, which {why}.*use dropout=0"):
        Deep(network).build(X)


def test_bad_values_are_refused():
    with pytest.raises(SpecError, match=r"Deep\(features=0\): features must be an integer above 0"):
        Deep(features=0)
    with pytest.raises(SpecError, match="network must be a network spec"):
        Deep(network=RBF())
    with pytest.raises(SpecError, match="random_state must be an integer, 0 or more"):
        Deep(random_state=-1)
