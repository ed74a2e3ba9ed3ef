import itertools

import pytest
import torch
from torch.nn import functional

from likely.core.errors import DataError, SpecError
from likely.networks.layers.conv import Conv
from likely.networks.layers.resample import (
    DOWNSAMPLES,
    Downsample,
    PositionMean,
    TransposedConv,
    Unpool,
    Upsample,
    max_with_indices,
)

SHAPES = [(9,), (8, 6)]


def noise(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def inner(a, b):
    return (a * b).sum()


def blocks(x, factor):
    """(…, positions, values of its block) for each axis in turn: (n, c, *positions, f^dims)."""
    for axis in range(2, x.ndim):
        x = x.unfold(axis, factor, factor)
    return x.flatten(2 + (x.ndim - 2) // 2)


@pytest.mark.parametrize(("sizes", "factor"), list(itertools.product(SHAPES, (2, 3))))
def test_down_sampling_is_the_max_mean_or_first_of_each_block(sizes, factor):
    x = noise(2, 3, *sizes)
    tiles = blocks(x, factor)
    torch.testing.assert_close(Downsample("max", factor)(x), tiles.amax(-1))
    torch.testing.assert_close(Downsample("mean", factor)(x), tiles.mean(-1))
    whole = tuple(slice(0, size // factor) for size in sizes)
    torch.testing.assert_close(Downsample("stride", factor)(x)[(..., *whole)], tiles[..., 0])
    assert Downsample("stride", factor)(x).shape[2:] == tuple(-(-size // factor) for size in sizes)


@pytest.mark.parametrize("dims", [1, 2])
def test_every_second_position_is_the_convolution_with_stride_two(dims):
    conv = Conv(2, 3, 3, dims=dims).double()
    strided = Conv(2, 3, 3, dims=dims, stride=2).double()
    strided.load_state_dict(conv.state_dict())
    x = noise(2, 2, *[7] * dims)
    torch.testing.assert_close(Downsample("stride")(conv(x)), strided(x))


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("dims", [1, 2])
def test_nearest_is_the_adjoint_of_the_mean_up_to_the_block(dims, factor):
    """⟨mean x, y⟩ · f^dims = ⟨x, nearest y⟩."""
    x, y = noise(2, 3, *[4 * factor] * dims), noise(2, 3, *[4] * dims)
    left, right = inner(Downsample("mean", factor)(x), y), inner(x, Upsample("nearest", factor)(y))
    torch.testing.assert_close(left * factor**dims, right)
    torch.testing.assert_close(Downsample("mean", factor)(Upsample("nearest", factor)(y)), y)


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("dims", [1, 2])
def test_transposed_convolution_is_the_adjoint_of_strided_convolution(dims, factor):
    """⟨Cx, y⟩ = ⟨x, Cᵀy⟩ with the same kernel; one that overlaps by l positions is that of x padded by as many."""
    for overlap in (0, 1):
        kernel = factor + 2 * overlap
        up = TransposedConv(4, 3, factor, kernel=kernel, dims=dims, bias=False).double()
        down = Conv(3, 4, kernel, dims=dims, stride=factor, padding="valid", bias=False).double()
        down.weight.data = up.weight.data
        x, y = noise(2, 3, *[5 * factor] * dims), noise(2, 4, *[5] * dims)
        padded = torch.nn.functional.pad(x, [overlap] * (2 * dims))
        torch.testing.assert_close(inner(down(padded), y), inner(x, up(y)))


def test_transposed_convolution_is_the_sum_of_its_equation():
    """y[o][f·p + j] = b[o] + Σᵢ w[i, o][j] x[i][p]."""
    up = TransposedConv(3, 2, 2, dims=1).double()
    x = noise(4, 3, 5)
    output = up(x)
    for p, j in itertools.product(range(5), range(2)):
        torch.testing.assert_close(output[..., 2 * p + j], up.bias + x[..., p] @ up.weight[:, :, j])


EVERY_WIDTH = list(itertools.product([(8,), (9,), (8, 6), (7, 5), (5, 8), (4, 9)], (2, 3)))


@pytest.mark.parametrize(("sizes", "factor"), EVERY_WIDTH)
def test_unpool_puts_maxima_back_where_they_were(sizes, factor):
    """Also after widths that blocks do not fill."""
    x = noise(2, 3, *sizes)
    largest, indices = max_with_indices(x, factor)
    back = Unpool(factor)(largest, indices, sizes)
    assert back.shape == x.shape
    torch.testing.assert_close(back[back != 0], x[back != 0])
    torch.testing.assert_close(Downsample("max", factor)(back.abs()), largest.abs())
    assert (back != 0).sum() == largest.numel()
    peer = functional.max_unpool1d if len(sizes) == 1 else functional.max_unpool2d
    torch.testing.assert_close(back, peer(largest, indices, factor, output_size=sizes))


def test_unpool_refuses_the_size_of_another_image():
    largest, indices = max_with_indices(noise(1, 1, 8, 6))
    with pytest.raises(DataError, match=r"size=\(8, 8\) does not become \(4, 3\) by blocks of 2; give the size of the"):
        Unpool()(largest, indices, (8, 8))


@pytest.mark.parametrize("sizes", [(8,), (9,), (8, 6), (7, 5)])
def test_unpool_is_the_adjoint_of_max_where_it_stands(sizes):
    """⟨M v, y⟩ = ⟨v, Mᵀ y⟩, with M the derivative of max down-sampling at x."""
    x, v = noise(2, 3, *sizes), noise(2, 3, *sizes)
    largest, indices = max_with_indices(x)
    y = noise(*largest.shape)
    derivative = v.flatten(2).gather(2, indices.flatten(2)).view_as(largest)
    torch.testing.assert_close(inner(derivative, y), inner(v, Unpool()(y, indices, sizes)))
    (gradient,) = torch.autograd.grad(Downsample("max")(leaf := x.requires_grad_()), leaf, y)
    torch.testing.assert_close(gradient, Unpool()(y, indices, sizes))


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_bilinear_is_exact_on_planes_away_from_the_edge(factor):
    """A plane a + b·row + c·column, sampled at the new centres (p + ½)/f − ½."""
    rows, columns = torch.meshgrid(torch.arange(6.0), torch.arange(5.0), indexing="ij")
    enlarged = Upsample("bilinear", factor)((2 + 3 * rows - columns).view(1, 1, 6, 5))[0, 0]
    r, c = ((torch.arange(n * factor) + 0.5) / factor - 0.5 for n in (6, 5))
    plane = 2 + 3 * r.unsqueeze(1) - c
    inside = slice(factor, -factor)
    torch.testing.assert_close(enlarged[inside, inside], plane[inside, inside], atol=1e-5, rtol=1e-5)


def test_bilinear_is_linear_along_each_axis():
    x = noise(1, 2, 4, 5)
    along = functional.interpolate(x.flatten(1, 2), scale_factor=2, mode="linear").view(1, 2, 4, 10)
    both = Upsample("bilinear")(along.movedim(2, 3).flatten(1, 2)).view(1, 2, 10, 8).movedim(2, 3)
    torch.testing.assert_close(Upsample("bilinear")(x), both)


def test_the_mean_over_positions():
    x = noise(2, 3, 4, 5)
    torch.testing.assert_close(PositionMean()(x), x.flatten(2).mean(-1))


def test_transposed_convolution_starts_with_unit_variance(seed):
    """The variance of 10⁵ outputs of white noise is 1 within a tenth, biases aside.

    Its standard error is 1.4 % or less, √(2/16,384) by the weights and √(2/32,768) by the noise: 7 of it are a false
    alarm in 1 of 10¹¹ seeds.
    """
    torch.manual_seed(seed)
    for kernel in (2, 4):
        up = TransposedConv(64, 64, kernel=kernel, bias=False)
        assert abs(up(torch.randn(8, 64, 8, 8))[..., 1:-1, 1:-1].var() - 1) < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Downsample("median"), f"how='median' must be one of {', '.join(DOWNSAMPLES)}"),
        (lambda: Downsample("max", 0), "factor=0 must be an integer, 1 or more"),
        (lambda: Upsample("unpool"), "must be nearest or bilinear"),
        (lambda: Unpool(1.5), "factor=1.5 must be"),
        (lambda: TransposedConv(1, 1, kernel=3), "kernel=3 must be None, or longer than factor=2 by an even number"),
        (lambda: TransposedConv(1, 1, dims=3), r"dims=3 must be 1 \(series\) or 2"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(SpecError, match=message):
        call()
