import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.networks import MLP, ConvNet, ResNet, UNet
from likely.networks.layers.conv import Conv
from likely.networks.layers.resample import UPSAMPLES, Downsample, TransposedConv, Upsample
from likely.theory.receptive_field import reach, receptive_field, receptive_gradient, receptive_span

ROWS = 256


def measured(network, in_shape, position=None, layer=-1, rows=ROWS):
    """First and last place with a gradient, along each axis."""
    seen = receptive_gradient(network, in_shape, position, layer, rows).nonzero()
    return tuple(slice(int(low), int(high) + 1) for low, high in zip(seen.amin(0), seen.amax(0), strict=True))


def test_fields_grow_by_the_sums_of_the_textbook():
    """rₗ = rₗ₋₁ + d(k − 1)·jₗ₋₁, jₗ = s·jₗ₋₁, oₗ = oₗ₋₁ − p·jₗ₋₁."""
    layers = [(3, 1, 1), (5, 2, 1), (3, 1, 2), (2, 3, 1), (3, 2, 3)]
    net = nn.Sequential(*[Conv(1, 1, k, stride=s, dilation=d) for k, s, d in layers])
    r, j, o = 1, 1, 0
    for (k, s, d), field in zip(layers, receptive_field(net, (1, 64, 64)), strict=True):
        r, o = r + d * (k - 1) * j, o - (d * (k - 1) // 2) * j
        j *= s
        assert field == ("Conv", (r, r), (j, j), (o, o))


def test_two_three_by_three_kernels_see_five_by_five():
    assert receptive_field(ConvNet((4, 4), downsample=None), (1, 28, 28))[-1].size == (5, 5)


NETWORKS = {
    "max": ConvNet((6, 6)),
    "mean": ConvNet((6, 6), downsample="mean", activation="tanh"),
    "stride": ConvNet((6, 6), downsample="stride", kernel=5),
    "dilated": ConvNet((6, 6), downsample=None, dilation=3, padding="valid"),
    "even": ConvNet((6, 6), kernel=4, stride=2, downsample=None),
    "residual": ResNet((4, 6), blocks=1),
    "post": ResNet((4, 6), blocks=1, preactivation=False, norm="layer"),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("in_shape", [(1, 41, 38), (2, 40), (43,)])
def test_the_sums_agree_with_the_gradients(name, in_shape):
    network = NETWORKS[name]
    assert receptive_span(network, in_shape) == measured(network, in_shape)


@pytest.mark.parametrize("name", ["max", "residual"])
def test_they_agree_after_every_layer_and_at_the_edges(name):
    network = NETWORKS[name]
    for layer in range(len(receptive_field(network, (1, 24, 24)))):
        for position in (None, (0, 0), (1, 3)):
            span = receptive_span(network, (1, 24, 24), position, layer)
            assert span == measured(network, (1, 24, 24), position, layer, rows=128)


@pytest.mark.parametrize("upsample", UPSAMPLES)
def test_they_agree_wherever_a_unit_of_a_u_net_lies(upsample):
    """Ways up and down are as wide as the field says; units of one block see different parts."""
    network = UNet((2, 3, 4), upsample=upsample, activation="tanh", norm=None)
    spans = {}
    for place in (39, 40, 41, 42):
        spans[place] = receptive_span(network, (1, 83), (place,))
        assert spans[place] == measured(network, (1, 83), (place,))
    widest = max(span[0].stop - span[0].start for span in spans.values())
    assert receptive_field(network, (1, 83))[-1].size == (widest,)
    assert receptive_field(network, (1, 83))[-1].jump == (1,)


def test_plain_torch_layers_are_known():
    net = nn.Sequential(
        nn.Conv2d(1, 4, (3, 5), padding=(1, 2)),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2, padding=1, dilation=2),
        nn.AvgPool2d(3, stride=1),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.Flatten(),
        nn.LazyLinear(1),
    )
    assert receptive_span(net, (1, 48, 60)) == measured(net, (1, 48, 60))
    assert all(module.training for module in net.modules())
    assert [field.layer for field in receptive_field(net, (1, 48, 60))][-1] == "Conv2d"


def test_up_sampling_brings_fields_closer():
    net = nn.Sequential(Conv(1, 2, 3, dims=1), Downsample("mean", 4), Upsample("nearest"), TransposedConv(2, 1, dims=1))
    assert [field.jump for field in receptive_field(net, (1, 40))] == [(1,), (4,), (2,), (1,)]


def test_effective_fields_look_at_the_middle():
    """The gradient is larger in the inner half of a deep network's field than in the rest."""
    seen = receptive_gradient(ConvNet((6,) * 6, downsample=None, activation="tanh"), (1, 33))
    span = receptive_span(ConvNet((6,) * 6, downsample=None), (1, 33))[0]
    inside = seen[span]
    quarter = len(inside) // 4
    assert inside[quarter:-quarter].mean() > 2 * torch.cat([inside[:quarter], inside[-quarter:]]).mean()


def test_what_is_asked_of_a_spec_leaves_random_numbers_alone():
    state = torch.get_rng_state()
    first, second = (receptive_gradient(ConvNet((3,)), (1, 12)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


class _Own(nn.Module):
    def forward(self, x):
        return x.flip(-1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: receptive_field(MLP((4,)), (10,)), "does not start with a convolution"),
        (lambda: receptive_field(nn.Sequential(Conv(1, 1, 3), _Own()), (1, 8, 8)), "The field of a _Own is not known"),
        (lambda: receptive_span(ConvNet(), (1, 28, 28), (7, 0)), r"position=\(7, 0\) must lie within \(7, 7\)"),
        (lambda: receptive_span(ConvNet(), (1, 28, 28), (0,)), r"position=\(0,\) must lie within \(7, 7\)"),
        (lambda: receptive_gradient(ConvNet(), (1, 28, 28), layer=6), "layer=6: there are 6 layers, counted from 0"),
        (lambda: receptive_field(ConvNet(), (28, 28, 1)), "channels first"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(SpecError, match=message):
        call()


class _Flipped(_Own):
    pass


def test_other_modules_can_be_registered():
    @reach.register
    def _(module: _Flipped, low: int, high: int, axis: int = 0) -> tuple[int, int]:
        return 7 - high, 7 - low

    assert receptive_span(nn.Sequential(Conv(1, 1, 3), _Flipped()), (1, 8, 8), (0, 1)) == (slice(6, 8), slice(5, 8))
