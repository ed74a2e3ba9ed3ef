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


@pytest.mark.parametrize("network", [MLP((4,)), UNet((4,), patch=2)])
def test_one_time_for_all_rows_is_that_time_for_each(network):
    field = Field(network, (1, 6, 6), None).eval()
    x = torch.randn(5, 1, 6, 6)
    torch.testing.assert_close(field(x, torch.tensor([0.3])), field(x, torch.full((5,), 0.3)))


def test_a_network_of_other_rows_is_refused():
    with pytest.raises(SpecError, match=r"does not suit rows of shape \(3,\) .* \(5,\) per row; \(3,\) is needed"):
        Field(lambda in_shape, out_features, condition: nn.Bilinear(3, 32, 5), (3,), None)
    with pytest.raises(SpecError, match=r"needs 5 × 5 pixels or more; found rows of shape \(1, 3, 3\)"):
        Field(UNet(padding="reflect"), (1, 3, 3), None)


def test_times_far_apart_have_features_far_apart():
    features = time_features(torch.linspace(0, 1, 50))
    gaps = torch.cdist(features, features) + 9 * torch.eye(50)
    assert float(gaps.min()) > 0.1
