"""MessagePassing: permuted graphs get the same answer, sums see what means do not, and one layer is its formula."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.data.graph import Graph, Graphs
from likely.networks import MessagePassing

RING = Graph(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])


def answer(net, graph):
    return net(Graphs.of([graph])).detach()


@pytest.mark.parametrize("message", ["mlp", "neighbour"])
@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
def test_the_order_of_nodes_does_not_matter(message, aggregate):
    net = MessagePassing((4, 4), message=message, aggregate=aggregate).build((3,), 2)
    order = torch.tensor([3, 0, 4, 1, 2])
    place = order.argsort()
    turned = Graph(RING.features[order], place[torch.as_tensor(RING.edges)])
    torch.testing.assert_close(answer(net, turned), answer(net, RING), rtol=1e-4, atol=1e-5)


def test_a_layer_of_the_isomorphism_network_is_the_formula():
    """ψ((1 + ε)hₜ + Σₛ hₛ) with one neighbour s = t − 1 on a ring."""
    net = MessagePassing((4,), message="neighbour", level="node").build((3,), 2)
    layer = net.blocks[0].layer
    torch.nn.init.constant_(layer.epsilon, 0.3)
    h = RING.features
    expected = layer.updated(layer.own(1.3 * h + h.roll(1, 0)).relu())
    torch.testing.assert_close(layer(Graphs.of([RING])), expected, rtol=1e-4, atol=1e-5)


def test_sums_count_neighbours_and_means_do_not():
    """A ring of 3 and one of 4 with equal features: every node sees the same mean, sums over nodes differ."""
    rings = [Graph(torch.ones(n, 1), [list(range(n)), [*range(1, n), 0]]) for n in (3, 4)]
    means = MessagePassing((4,), aggregate="mean", readout="mean").build((1,), 2)
    sums = MessagePassing((4,), aggregate="sum", readout="sum").build((1,), 2)
    torch.testing.assert_close(answer(means, rings[0]), answer(means, rings[1]))
    inner = [answer(sums, ring) - sums.last.bias for ring in rings]
    torch.testing.assert_close(inner[1] * 3, inner[0] * 4, rtol=1e-4, atol=1e-5)


def test_choices_are_checked():
    with pytest.raises(SpecError, match="aggregate must be one of"):
        MessagePassing(aggregate="median")
    with pytest.raises(SpecError, match="message must be mlp or neighbour"):
        MessagePassing(message="letter")
