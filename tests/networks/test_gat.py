"""GAT: widths of its heads, the formula of one attention layer node by node, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import leaky_relu

from likely.core.errors import SpecError
from likely.data.graph import Graph, Graphs
from likely.networks import GAT

STAR = Graph(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), [[1, 2, 3], [0, 0, 0]])


def test_one_layer_is_attention_over_the_neighbours_and_the_node_itself():
    """Node 0 looks at all four; the others, which no edge enters, at themselves alone."""
    net = GAT(heads=2, layers=1, out_heads=1, dropout=0.0).build((3,), 2).eval()
    layer = net.last
    values = STAR.features @ layer.linear.weight.T
    score = leaky_relu(values[0] @ layer.at_target[0] + values @ layer.at_source[0], 0.2)
    expected = torch.cat([(score.softmax(0) @ values)[None], values[1:]]) + layer.bias
    torch.testing.assert_close(net(Graphs.of([STAR])), expected, rtol=1e-4, atol=1e-5)


def test_heads_stand_side_by_side_and_the_last_are_averaged():
    net = GAT(hidden=4, heads=3, layers=2, out_heads=5).build((3,), 2)
    assert len(net.blocks) == 1
    assert net.blocks[0].layer.linear.weight.shape == (3 * 4, 3)
    assert net.last.linear.weight.shape == (5 * 2, 3 * 4)
    assert net(Graphs.of([STAR])).shape == (4, 2)
    assert GAT(level="graph").build((3,), 2)(Graphs.of([STAR, STAR])).shape == (2, 2)


def test_attention_dropout_is_that_of_the_layers_unless_it_is_given():
    assert GAT(dropout=0.3).build((3,), 2).last.dropout.p == 0.3
    assert GAT(dropout=0.3, attention_dropout=0.1).build((3,), 2).last.dropout.p == 0.1


@pytest.mark.parametrize("options", [{"heads": 0}, {"layers": 0}, {"hidden": (8,)}, {"attention_dropout": 1.0}])
def test_values_that_will_not_do_are_refused(options):
    (name,) = options
    with pytest.raises(SpecError, match=f"{name} must be"):
        GAT(**options)
