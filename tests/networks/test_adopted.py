import copy
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional

from likely.core.random import drawing
from likely.networks.adopted import adopted
from likely.networks.base import as_network
from likely.networks.layers import Dropout


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, scale=1.0):
        return functional.dropout(self.linear(x), 0.5) + scale * torch.randn_like(x)


def modules():
    return {
        "dropout": nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)),
        "nested": nn.Sequential(nn.Sequential(nn.Dropout(0.5)), nn.Linear(4, 4)),
        "alpha": nn.Sequential(nn.Linear(4, 4), nn.AlphaDropout(0.5)),
        "own code": Noisy(),
        "attention": nn.TransformerEncoderLayer(4, 1, 8, dropout=0.5),
    }


@pytest.mark.parametrize("name", modules())
def test_a_module_draws_from_the_generator_of_the_call(name):
    module = adopted(modules()[name])
    twin, x, before = copy.deepcopy(module), torch.ones(6, 4), torch.get_rng_state()
    with drawing(1):
        first, second = module(x), module(x)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(first, second)
    with drawing(1):
        assert torch.equal(twin(x), first)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    with drawing(1):
        assert torch.equal(twin(x), first)  # a copy runs its own layers


def test_what_cannot_draw_is_left_alone():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.LSTM(3, 2))
    assert "forward" not in vars(adopted(module))


def test_the_users_own_module_stays_as_it_is():
    module = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))
    for network in (as_network(module), as_network(lambda in_shape, out_features: module)):
        built = network.build((2,), 1)
        assert type(built[1]) is Dropout
        assert type(module[1]) is nn.Dropout
        assert built[0] is not module[0]


def test_the_signature_of_forward_is_kept():
    assert list(inspect.signature(adopted(Noisy()).forward).parameters) == ["x", "scale"]
