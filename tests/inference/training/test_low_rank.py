"""Changes of low rank: where they begin, how many numbers they have, and that they are the merged weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.inference import LowRank
from likely.inference.training.low_rank import adapt, changed, merged
from likely.inference.training.taking_over import adaptable, take_over
from likely.networks import GRU, MLP, ConvNet, Transformer


@pytest.mark.parametrize("network", [MLP((6,)), ConvNet((4,)), GRU(4, bidirectional=True), Transformer(8, 2, 1)])
def test_merged_weights_answer_as_those_apart_do(network, rng):
    x = torch.tensor(rng.normal(size=(5, 1, 8, 8) if isinstance(network, ConvNet) else (5, 6)), dtype=torch.float32)
    plain = network.build(tuple(x.shape[1:]), 3)
    apart = network.build(tuple(x.shape[1:]), 3)
    take_over(apart, dict(plain.named_parameters()), dict(plain.named_buffers()))
    spec = LowRank(2, 0.7)
    adapt(apart, adaptable(apart), spec)

    def together():
        stacked = {name: value.detach().unsqueeze(0) for name, value in apart.named_parameters()}
        return {name: value[0] for name, value in merged(plain, stacked, spec.scale).items()}

    assert all(torch.equal(value, together()[name]) for name, value in plain.named_parameters())
    torch.testing.assert_close(apart(x), plain(x), rtol=1e-5, atol=1e-5)
    for name, value in apart.named_parameters():
        if name.endswith(".up"):
            nn.init.normal_(value)
    plain.load_state_dict(together(), strict=False)
    torch.testing.assert_close(plain(x), apart(x), rtol=1e-5, atol=1e-5)


def test_a_change_begins_at_the_weight_and_has_its_rank():
    """r·(in + out) numbers learn in place of in·out; a kernel is a matrix over its outputs."""
    for layer, shape in ((nn.Linear(7, 5), (5, 7)), (nn.Conv2d(3, 4, 3), (4, 27))):
        weight = layer.weight.detach().clone()
        adapt(layer, ["weight"], LowRank(2))
        assert torch.equal(layer.weight, weight)
        learned = {name: value for name, value in layer.named_parameters() if value.requires_grad}
        assert sum(value.numel() for name, value in learned.items() if name != "bias") == 2 * sum(shape)
        for value in learned.values():
            nn.init.normal_(value)
        change = (layer.weight - weight).reshape(shape)
        assert torch.linalg.matrix_rank(change.detach(), atol=1e-4) == 2


def test_members_are_changed_apart():
    weight, up, down = torch.randn(3, 4, 2, 2), torch.randn(3, 4, 1), torch.randn(3, 1, 4)
    for member in range(3):
        own = changed(weight[member], up[member], down[member], 0.5)
        torch.testing.assert_close(changed(weight, up, down, 0.5)[member], own)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rank": 0}, "rank must be a positive integer"),
        ({"rank": 1.5}, "rank must be a positive integer"),
        ({"scale": 0.0}, "scale must be a positive number"),
    ],
)
def test_ranks_and_scales_that_will_not_do(arguments, words):
    with pytest.raises(SpecError, match=words):
        LowRank(**arguments)
