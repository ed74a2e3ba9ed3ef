"""The masked form of a network: which ones have it, and how it starts."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.networks import MLP, Linear
from likely.networks.masked import masked_network


def test_a_masked_linear_network_starts_at_zero():
    assert not masked_network(Linear(), [0, 0, 1], [0, 1, 1])(torch.randn(3, 3)).any()


def test_the_choices_of_an_mlp_are_those_of_its_masked_form():
    spec = MLP((8, 6), activation="tanh", residual="add", dropout=0.5)
    module = masked_network(spec, [0, 1], [0, 1, 1], condition=2)
    assert [layer.out_features for layer in module.affine] == [8, 6]
    assert (module.residual, module.condition, module.last.out_features) == ("add", 2, 3)
    assert any(isinstance(layer, torch.nn.Dropout) or "Dropout" in type(layer).__name__ for layer in module.modules())


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("conv_net()", "has no masked form, in which columns see earlier ones"),
        (MLP((4,), norm="layer"), "norm='layer' has no masked form"),
        (MLP((4,), residual="zero"), "residual='zero' has no masked form"),
    ],
)
def test_what_has_no_masked_form_is_refused(network, message):
    with pytest.raises(SpecError, match=message):
        masked_network(network, [0], [0])
