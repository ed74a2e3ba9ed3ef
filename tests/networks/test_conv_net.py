import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from likely import Classifier
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec
from likely.data.graph import Graph
from likely.inference import MAP
from likely.networks import ConvNet, Network
from likely.networks.layers import ACTIVATIONS, activation
from likely.networks.layers.conv import parameter_count
from likely.optim import Adam

NORMS = (None, "batch", "layer")


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameters_are_those_of_its_convolutions_and_of_the_mlp():
    net = ConvNet((4, 6), kernel=5, hidden=(10,)).build((3, 16, 16), 2)
    dense = (6 * 4 * 4 * 10 + 10) + (10 * 2 + 2)
    assert count(net) == parameter_count(3, 4, 5) + parameter_count(4, 6, 5) + dense
    mean = ConvNet((4, 6), kernel=5, hidden=(), pool="mean").build((3, 16, 16), 2)
    assert count(mean) == parameter_count(3, 4, 5) + parameter_count(4, 6, 5) + 6 * 2 + 2
    series = ConvNet((4,), hidden=(), pool="mean").build((3, 16), 2)
    assert count(series) == parameter_count(3, 4, (3,)) + 4 * 2 + 2


@pytest.mark.parametrize("in_shape", [(2, 9, 7), (2, 12), (12,)])
@pytest.mark.parametrize("downsample", [None, "max", "mean", "stride"])
@pytest.mark.parametrize("norm", NORMS)
def test_images_series_and_rows_of_numbers_have_one_answer_each(norm, downsample, in_shape):
    net = ConvNet((3, 4), hidden=(5,), norm=norm, downsample=downsample).build(in_shape, 2).eval()
    x = torch.randn(6, *in_shape)
    assert net(x).shape == (6, 2)
    torch.testing.assert_close(net(x)[:2], net(x[:2]), atol=1e-6, rtol=1e-5)  # whatever else is in the batch
    assert net.double()(x.double()).dtype == torch.float64


def test_one_stage_is_the_equation():
    """η = W vec(down(φ(w ∗ x + b))) + c."""
    spec = ConvNet((3,), hidden=(), activation="tanh", downsample="mean")
    net = spec.build((2, 6, 6), 4)
    x = torch.randn(5, 2, 6, 6)
    conv, last = net.features[0], net.head
    z = nn.functional.conv2d(x, conv.weight, conv.bias, padding=1)
    h = nn.functional.avg_pool2d(torch.tanh(z), 2)
    torch.testing.assert_close(net(x), h.reshape(5, -1) @ last.weight.T + last.bias, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_maximum_is_that_of_the_activations(name):
    """Where the maximum is taken first, it is because max φ(z) = φ(max z)."""
    net = ConvNet((3,), activation=name).build((1, 6, 6), 1)
    x = 3 * torch.randn(5, 1, 6, 6)
    expected = nn.functional.max_pool2d(activation(name)(net.features[0](x)), 2)
    torch.testing.assert_close(net.features(x), expected)


@pytest.mark.parametrize(("activation", "norm"), list(itertools.product(("relu", "gelu"), NORMS)))
@pytest.mark.parametrize("in_shape", [(2, 8, 9), (2, 11)])
def test_what_is_seen_moves_with_the_image_and_the_mean_of_it_stays(in_shape, activation, norm):
    choices = {"padding": "circular", "downsample": None, "pool": "mean", "dilation": 2}
    net = ConvNet((4, 5), activation=activation, norm=norm, **choices).build(in_shape, 3).double().eval()
    x = torch.randn(4, *in_shape, dtype=torch.float64)
    axes = tuple(range(2, x.ndim))
    moved = x.roll((3, 5)[: len(axes)], axes)
    torch.testing.assert_close(net.features(moved), net.features(x).roll((3, 5)[: len(axes)], axes), atol=1e-6, rtol=0)
    torch.testing.assert_close(net(moved), net(x), atol=1e-6, rtol=0)


def test_down_sampling_keeps_shifts_by_whole_blocks():
    net = ConvNet((4, 5), padding="circular", pool="mean").build((1, 8, 8), 2).double()
    x = torch.randn(3, 1, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(net(x.roll((4, -4), (2, 3))), net(x), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("norm", "downsample"), list(itertools.product(NORMS, ("max", "stride"))))
def test_stacked_members_train_as_each_by_itself(norm, downsample, same_stacked):
    same_stacked(ConvNet((3,), hidden=(4,), norm=norm, downsample=downsample), (2, 6, 6))


def test_the_same_seed_builds_the_same_module_and_meta_builds_none():
    def built():
        torch.manual_seed(3)
        return ConvNet((3,)).build((1, 6, 6), 2)

    for one, other in zip(built().parameters(), built().parameters(), strict=True):
        assert torch.equal(one, other)
    with torch.device("meta"):
        assert all(p.is_meta for p in ConvNet((3,), init="orthogonal").build((1, 6, 6), 2).parameters())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_start_at_order_one(activation):
    net = ConvNet((16, 16), activation=activation).build((3, 12, 12), 16)
    assert 1e-2 < net(torch.randn(64, 3, 12, 12)).std() < 3


@pytest.mark.parametrize(("norm", "least"), [("batch", 0.85), (None, 0.5)])
def test_it_learns_digits_in_one_epoch(norm, least):
    """600 images of 8 × 8, seen once; guessing gets one in ten."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = (digits.images / 16)[order, None], digits.target[order]
    inference = MAP(optimizer=Adam(3e-3), epochs=1, batch_size=16)
    model = Classifier(network=ConvNet(norm=norm), inference=inference, random_state=0)
    assert model.fit(X[:600], y[:600]).score(X[600:], y[600:]) > least


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channels": ()}, r"ConvNet\(channels=\(\)\): channels must be a tuple of positive integers"),
        ({"channels": (32, 0)}, "channels must be a tuple of positive integers"),
        ({"channels": 32}, "channels must be a tuple of positive integers"),
        ({"kernel": 0}, "kernel must be an integer, 1 or more"),
        ({"kernel": (3, 3)}, "kernel must be an integer, 1 or more"),
        ({"stride": 0}, "stride must be an integer"),
        ({"dilation": 1.5}, "dilation must be an integer"),
        ({"padding": "same"}, "padding must be one of zero, valid, circular, reflect"),
        ({"downsample": "median"}, "downsample must be None or one of max, mean, stride"),
        ({"activation": "rleu"}, "activation must be one of identity"),
        ({"norm": "virtual"}, "norm must be None or one of batch, layer"),
        ({"dropout": 1.0}, "dropout must be a probability"),
        ({"hidden": 64}, "hidden must be a tuple of positive integers"),
        ({"pool": "max"}, "pool must be flatten or mean"),
        ({"init": "xavier"}, "init must be one of lecun"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        ConvNet(**arguments)


def test_an_image_too_small_is_told_what_would_do():
    spec = ConvNet((4, 4, 4), padding="valid")
    with pytest.raises(SpecError, match=r"needs 22 × 22 pixels or more; found rows of shape \(1, 21, 30\)"):
        spec.build((1, 21, 30), 1)
    assert spec.build((1, 22, 30), 1)(torch.zeros(2, 1, 22, 30)).shape == (2, 1)
    with pytest.raises(SpecError, match=r"needs 4 positions .* If channels come last, move them first"):
        ConvNet().build((100, 3), 1)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3)])
def test_channels_last_are_seen_by_build_and_by_fit(shape):
    with pytest.raises(SpecError, match=r"channels first, .*np.moveaxis\(X, -1, 1\)"):
        ConvNet().build(shape, 1)
    with pytest.raises(DataError, match=r"^X: ConvNet takes images with channels first"):
        Classifier(network=ConvNet()).fit(np.zeros((4, *shape)), [0, 1, 0, 1])


def test_rows_of_other_kinds_are_refused_by_name():
    graphs = [Graph([[1.0]], np.zeros((2, 0), int)) for _ in range(4)]
    with pytest.raises(DataError, match="X has graphs; ConvNet takes images or series that all have one shape"):
        Classifier(network=ConvNet()).fit(graphs, [0, 1, 0, 1])
    with pytest.raises(DataError, match="X has sequences; ConvNet takes images"):
        Classifier(network=ConvNet()).fit([[[1.0]], [[1.0], [2.0]]], [0, 1])


def test_absurd_sizes_are_refused_before_memory_is_asked_for():
    with pytest.raises(SpecError, match=r"ConvNet.* would have 9,000[\d,]+ weights; .* 100,000,000 or fewer"):
        ConvNet((10**6, 10**6)).build((3, 28, 28), 1)


def test_text_and_json_round_trip():
    spec = ConvNet((8, 4), kernel=5, downsample=None, norm="batch", pool="mean")
    assert Network.parse('conv_net(channels=[8, 4], kernel=5, downsample=None, norm="batch", pool="mean")') == spec
    assert Spec.from_json(spec.to_json()) == spec
    assert Network.parse(repr(spec)) == spec
