"""ChebNet: node answers are its formula written densely, and a filter of order k reaches k steps."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.data.graph import Graph, Graphs
from likely.networks import ChebNet
from likely.networks.layers.graph import laplacian

PATH = Graph(
    torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
).undirected()


def polynomial(layer, scaled, h):
    """Σₖ Tₖ(L̃) h Wₖ + b by the three-term recurrence."""
    terms = [torch.eye(len(scaled)), scaled]
    while len(terms) <= layer.order:
        terms.append(2 * scaled @ terms[-1] - terms[-2])
    weights = layer.linear.weight.chunk(layer.order + 1)
    return sum(term @ h @ weight.T for term, weight in zip(terms, weights, strict=False)) + layer.bias


@pytest.mark.parametrize("order", [0, 1, 3])
def test_two_layers_are_the_formula(order):
    net, graphs = ChebNet((4,), order=order).build((3,), 2), Graphs.of([PATH])
    scaled = laplacian(graphs, "symmetric").dense() - torch.eye(6)
    hidden = polynomial(net.blocks[0].layer, scaled, PATH.features).relu()
    torch.testing.assert_close(net(graphs), polynomial(net.last, scaled, hidden), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_a_filter_reaches_as_many_steps_as_its_order(order):
    net = ChebNet((), order=order).build((3,), 2)
    changed = PATH.features.clone()
    changed[0] += 1.0
    other = Graph(changed, PATH.edges)
    moved = (net(Graphs.of([other])) - net(Graphs.of([PATH]))).abs().amax(1) > 1e-7
    assert moved.tolist() == [node <= order for node in range(6)]


def test_the_order_is_checked():
    with pytest.raises(SpecError, match="order must be"):
        ChebNet(order=-1)
