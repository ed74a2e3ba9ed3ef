"""Vector fields from any network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.models.generative.field import Field, time_features
from likely.networks import MLP, UNet


@pytest.mark.parametrize(
    ("network", "shape", "condition"),
    [
        (MLP((4,)), (3,), None),
        (MLP((4,)), (3,), (2,)),
        (MLP((4,)), (1, 4, 4), (2,)),
        (UNet((4,)), (2, 5, 5), (3,)),
        (UNet((4,)), (2, 5, 5), (1, 5, 5)),
        (UNet((4,)), (2, 5, 5), None),
    ],
)
def test_it_answers_in_the_shape_of_a_row(network, shape, condition):
    field = Field(network, shape, condition)
    x, t = torch.randn(6, *shape), torch.rand(6)
    told = None if condition is None else torch.randn(6, *condition)
    assert field(x, t, told).shape == x.shape
    assert not torch.equal(field(x, t, told), field(x, t.flip(0), told))


def test_a_network_of_other_rows_is_refused():
    with pytest.raises(SpecError, match="takes no rows of shape"):
        Field(lambda in_shape, out_features, condition: nn.Bilinear(3, 32, 5), (3,), None)


def test_times_far_apart_have_features_far_apart():
    features = time_features(torch.linspace(0, 1, 50))
    gaps = torch.cdist(features, features) + 9 * torch.eye(50)
    assert float(gaps.min()) > 0.1
