import itertools
import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from likely.core.errors import SpecError
from likely.networks.layers.conv import (
    PADDINGS,
    ChannelNorm,
    Conv,
    image_shape,
    output_size,
    parameter_count,
    room_before,
    shape_after,
)


def at(x, place, padding):
    """x[…, place] with what lies beyond the edge, along the last axis."""
    size = x.shape[-1]
    if 0 <= place < size:
        return x[..., place]
    if padding == "circular":
        return x[..., place % size]
    if padding == "reflect":
        return x[..., -place if place < 0 else 2 * (size - 1) - place]
    return torch.zeros_like(x[..., 0])


@pytest.mark.parametrize(
    ("padding", "kernel", "stride", "dilation"), list(itertools.product(PADDINGS, (1, 2, 3), (1, 2), (1, 2)))
)
def test_a_series_is_the_sum_of_the_equation(padding, kernel, stride, dilation):
    """y[o][p] = b[o] + Σᵢ Σⱼ w[o, i][j] x[i][s·p + d·j − l]."""
    conv = Conv(2, 3, kernel, dims=1, stride=stride, dilation=dilation, padding=padding).double()
    x = torch.randn(4, 2, 7, dtype=torch.float64)
    output = conv(x)
    before = 0 if padding == "valid" else dilation * (kernel - 1) // 2
    for p in range(output.shape[-1]):
        expected = conv.bias.expand(4, 3)
        for j in range(kernel):
            expected = expected + at(x, stride * p + dilation * j - before, padding) @ conv.weight[:, :, j].T
        torch.testing.assert_close(output[..., p], expected, atol=1e-12, rtol=0)
    size = output_size(7, kernel, stride=stride, dilation=dilation) if padding == "valid" else -(-7 // stride)
    assert output.shape[-1] == size


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize(("ours", "theirs"), [("zero", "zeros"), ("circular", "circular"), ("reflect", "reflect")])
@pytest.mark.parametrize("dims", [1, 2])
def test_it_agrees_with_torch(dims, ours, theirs, stride, dilation):
    layer = nn.Conv1d if dims == 1 else nn.Conv2d
    peer = layer(3, 4, 3, stride, dilation, dilation, padding_mode=theirs)
    conv = Conv(3, 4, 3, dims=dims, stride=stride, dilation=dilation, padding=ours)
    conv.load_state_dict(peer.state_dict())
    x = torch.randn(2, 3, *[9] * dims)
    torch.testing.assert_close(conv(x), peer(x), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("padding", ["zero", "circular", "reflect"])
def test_stride_one_keeps_the_size(padding, kernel):
    assert Conv(1, 1, kernel, padding=padding)(torch.zeros(1, 1, 6, 9)).shape == (1, 1, 6, 9)


def test_the_textbook_layer():
    """Ten 5 × 5 × 3 kernels on a 32 × 32 image, padded by 2: 32 + 2·2 − 5 + 1 = 32, and 10·(5·5·3 + 1) = 760."""
    assert output_size(32, 5, padding=2) == 32
    assert parameter_count(3, 10, 5) == 760
    conv = Conv(3, 10, 5)
    assert sum(p.numel() for p in conv.parameters()) == 760
    assert conv(torch.zeros(1, 3, 32, 32)).shape == (1, 10, 32, 32)
    assert parameter_count(3, 10, (5,), bias=False) == 150


def test_sizes_are_those_of_torch():
    for size, kernel, stride, padding, dilation in itertools.product((5, 8), (1, 2, 3), (1, 2, 3), (0, 1), (1, 2)):
        weight = torch.zeros(1, 1, kernel)
        peer = functional.conv1d(torch.zeros(1, 1, size), weight, None, stride, padding, dilation)
        assert output_size(size, kernel, stride=stride, padding=padding, dilation=dilation) == peer.shape[-1]


def test_kernel_one_mixes_channels_at_each_position():
    conv = Conv(3, 5, 1)
    x = torch.randn(2, 3, 4, 6)
    linear = functional.linear(x.movedim(1, -1), conv.weight[:, :, 0, 0], conv.bias)
    torch.testing.assert_close(conv(x), linear.movedim(-1, 1))


@pytest.mark.parametrize("dims", [1, 2])
def test_circular_convolution_moves_with_the_image(dims):
    conv = Conv(2, 3, 3, dims=dims, padding="circular", dilation=2)
    x = torch.randn(2, 2, *[8] * dims)
    shift, axes = tuple(range(3, 3 + dims)), tuple(range(2, 2 + dims))
    torch.testing.assert_close(conv(x.roll(shift, axes)), conv(x).roll(shift, axes), atol=1e-6, rtol=1e-5)


def test_the_output_lies_in_memory_channel_by_channel():
    conv = Conv(1, 16, 3)
    assert conv.weight.is_contiguous()
    assert conv(torch.randn(2, 1, 6, 6)).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("padding", PADDINGS)
def test_stacked_members_are_each_by_itself(padding):
    members = [Conv(2, 3, 3, padding=padding) for _ in range(3)]
    parameters, buffers = stack_module_state(members)
    x = torch.randn(4, 2, 6, 6)
    together = vmap(lambda p, b: functional_call(members[0], (p, b), (x,)))(parameters, buffers)
    torch.testing.assert_close(together, torch.stack([member(x) for member in members]), atol=1e-6, rtol=1e-5)


def test_norms_are_over_rows_and_positions_or_over_channels():
    x = 3 + 2 * torch.randn(4, 5, 6, 6)
    batch, layer = ChannelNorm("batch", 5)(x), ChannelNorm("layer", 5)(x)
    torch.testing.assert_close(batch, nn.BatchNorm2d(5)(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(layer.mean(1), torch.zeros(4, 6, 6), atol=1e-6, rtol=0)
    torch.testing.assert_close(layer.var(1, correction=0), torch.ones(4, 6, 6), atol=1e-3, rtol=0)


def test_it_starts_with_unit_variance(seed):
    """The variance of 10⁵ outputs of white noise is 1 within a tenth, biases aside.

    Its standard error is 1.7 %, √(2/9,216) by the weights and √(2/32,768) by the noise: a false alarm in 1 of 10⁸
    seeds.
    """
    torch.manual_seed(seed)
    conv = Conv(16, 64, 3, bias=False, padding="circular")
    assert abs(conv(torch.randn(8, 16, 16, 16)).var() - 1) < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Conv(1, 1, 3, dims=3), r"dims=3 must be 1 \(series\) or 2 \(images\)"),
        (lambda: Conv(1, 1, 3, padding="same"), "padding='same' must be one of zero, valid, circular, reflect"),
        (lambda: Conv(1, 1, 0), "kernel=0 must be an integer, 1 or more"),
        (lambda: Conv(1, 1, 3, stride=1.5), "stride=1.5 must be an integer"),
        (lambda: output_size(3, 5), "size=3: a kernel of 5 with dilation=1 and padding=0 needs 5 positions or more"),
        (lambda: output_size(3, 0), "Sizes are integers, 1 or more"),
        (lambda: image_shape((), "Net"), r"Net takes images .*; found rows of shape \(\)"),
        (lambda: image_shape((1, 2, 3, 4), "Net"), "Net takes images"),
        (lambda: image_shape((3, 0, 5), "Net"), "Net takes images"),
        (lambda: image_shape((28, 28, 1), "Net"), r"have them last; .*np.moveaxis\(X, -1, 1\) .* \(1, 28, 28\)"),
        (lambda: image_shape((32, 32, 3), "Net"), r"rows of shape \(3, 32, 32\)"),
        (lambda: image_shape((96, 128, 4), "Net"), r"rows of shape \(4, 96, 128\)"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(SpecError, match=message):
        call()


def test_feature_maps_with_many_channels_are_no_images_turned_round():
    assert image_shape((16, 5, 4), "Net") == (16, 5, 4)
    assert image_shape((3, 4, 4), "Net") == (3, 4, 4)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize(("padding", "kernel"), [("valid", 5), ("reflect", 5), ("circular", 7)])
def test_the_smallest_image_is_named_and_works(padding, kernel, dims):
    with torch.device("meta"):
        draft = nn.Sequential(*[Conv(1, 1, kernel, dims=dims, padding=padding) for _ in range(2)])
    with pytest.raises(SpecError, match=r"Net needs \d+") as refusal:
        shape_after(draft, (1, *[1] * dims), "Net")
    smallest = int(str(refusal.value).split()[2])
    assert shape_after(draft, (1, *[smallest] * dims), "Net")
    with pytest.raises(SpecError):
        shape_after(draft, (1, *[smallest - 1] * dims), "Net")


def test_even_kernels_have_one_more_position_behind():
    assert [room_before(k) for k in (1, 2, 3, 4, 5)] == [0, 0, 1, 1, 2]


def test_training_with_few_kernels_stays_inside_its_memory():
    """glibc looks at the ends of every block of memory that is freed, and aborts where something was written there."""
    code = """
import torch
from likely.networks.layers.conv import Conv
torch.set_num_threads(1)
x = torch.randn(12, 1, 12, 12)
network = torch.nn.Sequential(Conv(1, 4, 3, bias=False), Conv(4, 4, 3), Conv(4, 8, 1, stride=2), torch.nn.Flatten(1))
for _ in range(40):
    network(x).sum().backward()
print("sound")
"""
    checked = {**os.environ, "MALLOC_CHECK_": "3"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=checked)
    assert done.stdout.strip() == "sound", done.stderr
