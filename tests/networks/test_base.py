"""What a network is: a spec, a module that is copied, or a function that builds one; absurd sizes are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier
from likely.core.errors import SpecError
from likely.core.spec import registered
from likely.inference import MAP
from likely.networks import GCN, LSTM, MLP, ConvNet, Linear, ResNet
from likely.networks.base import MOST_LAYERS, Network, as_network, refuse_absurd, refuse_large


def test_a_module_is_copied_and_its_layers_start_anew():
    own = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    own[0].requires_grad_(False)
    before = {name: value.clone() for name, value in own.state_dict().items()}
    network = as_network(own)
    first, second = network.build((3,), 2), network.build((3,), 2)
    parts = [dict(module.named_parameters()) for module in (first, second)]
    frozen, free = ([n for n, v in parts[0].items() if v.requires_grad is learns] for learns in (False, True))
    assert all(torch.equal(parts[0][name], parts[1][name]) for name in frozen)
    assert not any(torch.equal(parts[0][name], parts[1][name]) for name in free)
    assert len(frozen) == len(free) == 2
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())


def test_a_function_is_told_the_shapes_and_its_module_is_copied():
    kept, told = nn.Linear(3, 2), []
    network = as_network(lambda in_shape, out_features: (told.append((in_shape, out_features)), kept)[1])
    built = network.build((3,), 2)
    assert told == [((3,), 2)]
    assert built is not kept
    torch.testing.assert_close(built(torch.ones(1, 3)), kept(torch.ones(1, 3)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: as_network(nn.Linear), r"network=Linear is a class; give a module, Linear\(…\)"),
        (lambda: as_network(lambda a, b: "x").build((3,), 2), "must return a torch.nn.Module; it returned a str"),
        (lambda: as_network(lambda a, b: nn.Linear(3, 2)).build((3,), 2, (1,)), "the function must take .*condition"),
        (lambda: MLP((1,) * (MOST_LAYERS + 1)), "MLP would have 2,001 layers"),
        (lambda: refuse_absurd(Linear(), 10**9), "would have 1,000,000,000 weights"),
        (lambda: refuse_large(Linear(), 10**12), r"would hold 1e\+12 numbers for each row"),
    ],
)
def test_what_will_not_do_is_refused(make, text):
    with pytest.raises(SpecError, match=text):
        make()


def test_text_becomes_a_spec():
    assert as_network("mlp(hidden=(8, 4))") == MLP((8, 4))


@pytest.mark.parametrize(
    ("network", "depth"), [(MLP((8, 4)), 2), (LSTM(layers=3), 3), (ResNet((8, 16), blocks=2), 4), (Linear(), 0)]
)
def test_depth_counts_layers_without_building_them(network, depth):
    assert network.depth == depth


def test_inputs_are_standardised_by_column_feature_or_channel():
    shapes = [MLP().columns((5,)), LSTM().columns((20, 3)), ConvNet().columns((3, 8, 8)), GCN().columns((4, 2))]
    assert shapes == [(5,), (3,), (3, 1, 1), (4,)]
    assert Network().features_at((5,)) == ((5,), -1)


WITH_DROPOUT = {name: cls for name, cls in registered(Network).items() if hasattr(cls, "dropout")}


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_every_network_that_drops_units_is_fitted_so(name):
    network = WITH_DROPOUT[name].example().replace(dropout=0.2)
    x = network.example_inputs(6, torch.Generator().manual_seed(0))
    model = Classifier(network=network, inference=MAP(epochs=1), random_state=0).fit(x, np.arange(6) % 2)
    assert model.n_iter_ == 1
