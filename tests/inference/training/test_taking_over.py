from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.spec import registered
from likely.inference.training.taking_over import head_of, take_over
from likely.networks import MLP, Network, Transformer
from likely.networks.layers.steps import Embedding


@pytest.mark.parametrize("name", registered(Network))
def test_the_head_is_what_depends_on_how_many_numbers_describe_a_target(name):
    network = registered(Network)[name].example()
    for shape in ((3, 8, 8), (1, 6, 6), (6, 2), (6,)):
        try:
            narrow, wide = (dict(network.build(shape, out).named_parameters()) for out in (2, 5))
        except (ValueError, RuntimeError, TypeError, NotImplementedError, IndexError):
            continue
        differing = {own for own, value in narrow.items() if value.shape != wide[own].shape}
        assert head_of(network.build(shape, 2)) == differing
        return
    raise AssertionError(f"{name} was built for none of these shapes")


def test_tables_take_the_rows_that_both_have():
    short, long = (nn.Sequential(Embedding(rows, 2), nn.Linear(2, 2)) for rows in (3, 5))
    before = long[0].weight.detach().clone()
    taken = take_over(long, dict(short.named_parameters()), {})
    assert torch.equal(long[0].weight[:3], short[0].weight)
    assert torch.equal(long[0].weight[3:], before[3:])
    assert taken.new == ("0.weight", "1.weight", "1.bias")
    assert take_over(short, dict(long.named_parameters()), {}).whole == ("0.weight",)


def test_a_tied_network_has_no_layer_that_reads():
    assert head_of(Transformer(4, 2, 1, tokens=5, tied=True, output="each").build((3,), 4)) == set()


def test_names_that_agree_in_no_shape_are_told():
    taken = take_over(MLP((4,)).build((3,), 2), dict(MLP((5,)).build((3,), 2).named_parameters()), {})
    assert taken.whole == ()
    assert taken.other == {"0.weight": (5, 3), "0.bias": (5,)}


def test_statistics_of_layers_go_with_them():
    first, second = (nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)) for _ in range(2))
    first(torch.randn(10, 3))
    take_over(second, dict(first.named_parameters()), dict(first.named_buffers()))
    assert torch.equal(first[0].running_mean, second[0].running_mean)
