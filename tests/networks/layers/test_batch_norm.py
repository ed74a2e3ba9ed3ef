"""Batch norm in bfloat16 by loops of ours is that of torch in float64, up to the rounding of what comes out."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, jvp
from torch.nn import functional

from likely.networks.layers import BatchNorm, halves
from likely.networks.layers.batch_norm import batch_norm

FILE = sys.modules[batch_norm.__module__]
MOMENTUM, EPS = 0.1, 1e-5
ROUNDING = 2**-8
"""Numbers in bfloat16 are this near to each other, relatively; a rounded one is half as far off."""

SHAPES = [(64, 16), (35, 3), (2, 1), (6, 700), (4096, 64), (77, 512)]


def drawn(shape, seed):
    """Numbers of other mean and scale in each channel, what comes back, and γ and β."""
    torch.manual_seed(seed)
    channels = shape[1]
    x = (torch.randn(shape) * (0.1 + 2 * torch.rand(channels)) + 3 * torch.randn(channels)).bfloat16()
    return x.requires_grad_(), torch.randn(shape).bfloat16(), torch.randn(2, channels).unbind()


def leaves(affine):
    return [part.clone().requires_grad_() for part in affine]


def averages(channels):
    return torch.zeros(channels), torch.ones(channels)


def exact(x, affine, rectified):
    """The same in float64, with its own leaves."""
    inputs = [part.detach().double().requires_grad_() for part in (x, *affine)]
    normal = functional.batch_norm(inputs[0], None, None, *inputs[1:], True, 0.0, EPS)
    return normal, normal.relu() if rectified else normal, inputs


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_float64(shape, rectified, seed):
    """Gradients where a rectified output is too near to 0 to tell its sign are left out, one in 10⁴."""
    x, towards, affine = drawn(shape, seed)
    inputs = [x, *leaves(affine)]
    out = batch_norm(x, averages(shape[1]), inputs[1:], MOMENTUM, EPS, rectified=rectified)
    normal, wanted, theirs = exact(x, affine, rectified)
    size = wanted.detach().abs()
    assert out.dtype == torch.bfloat16
    assert ((out.double() - wanted).abs() <= ROUNDING * size + 1e-4 * size.max()).all()
    clear = (normal.abs() > 1e-4) | torch.tensor(not rectified)
    towards = towards * clear
    own = torch.autograd.grad(out, inputs, towards)
    other = torch.autograd.grad(wanted, theirs, towards.double())
    assert [part.dtype for part in own] == [torch.bfloat16, torch.float32, torch.float32]
    scale = (affine[0].double().abs() / (x.double().var(0, correction=0) + EPS).sqrt()).detach()  # of ∂L/∂x in g
    assert ((own[0].double() - other[0]).abs() <= ROUNDING * other[0].abs() + 1e-2 * ROUNDING * scale * 8).all()
    for mine, wanted in zip(own[1:], other[1:], strict=True):
        torch.testing.assert_close(mine.double(), wanted, rtol=0, atol=1e-4 * math.sqrt(shape[0]))


def test_running_averages_move_as_in_float32(seed):
    x, _, affine = drawn((48, 6), seed)
    own, other = averages(6), averages(6)
    for _ in range(3):
        batch_norm(x, own, affine, MOMENTUM, EPS)
        functional.batch_norm(x.float(), *other, *affine, True, MOMENTUM, EPS)
    torch.testing.assert_close(own, other)


@pytest.mark.parametrize("rectified", [False, True])
def test_gradients_can_be_differentiated_again(rectified, seed):
    """Compiled gradients are near those with a graph, whose own gradients are near those in float64."""
    x, towards, affine = drawn((40, 4), seed)
    inputs = [x, *leaves(affine)]
    out = batch_norm(x, averages(4), inputs[1:], MOMENTUM, EPS, rectified=rectified)
    first = torch.autograd.grad(out, inputs, towards, retain_graph=True)
    again = torch.autograd.grad(out, inputs, towards, create_graph=True)
    second = torch.autograd.grad(again[0].float().square().sum(), inputs[:2])
    _, wanted, theirs = exact(x, affine, rectified)
    exactly = torch.autograd.grad(wanted, theirs, towards.double(), create_graph=True)
    twice = torch.autograd.grad(exactly[0].square().sum(), theirs[:2])
    for own, other in ((first, exactly), (again, exactly), (second, twice)):
        for mine, theirs_ in zip(own, other, strict=True):
            assert (mine.double() - theirs_).norm() <= 0.05 * theirs_.norm()


def test_frozen_parameters_get_no_gradient(seed):
    x, towards, affine = drawn((40, 4), seed)
    shift = affine[1].clone().requires_grad_()
    out = batch_norm(x.detach(), averages(4), (affine[0], shift), MOMENTUM, EPS)
    for graph in (False, True):
        (gradient,) = torch.autograd.grad(out, [shift], towards, retain_graph=True, create_graph=graph)
        torch.testing.assert_close(gradient, towards.float().sum(0), rtol=0.01, atol=0.05)


def test_numbers_that_are_not_finite_stay_so():
    x = torch.randn(32, 3).bfloat16()
    x[5, 1], x[7, 2] = math.nan, math.inf
    for rectified in (False, True):
        out = batch_norm(x, averages(3), (torch.ones(3), torch.zeros(3)), MOMENTUM, EPS, rectified=rectified)
        assert out.isnan().any(0).tolist() == [False, True, True]


def test_other_numbers_go_to_torch(monkeypatch, seed):
    """float32 gives torch's own bits; bfloat16 on many threads, without γ, or with other types, its answers."""
    x, _, affine = drawn((40, 4), seed)
    wanted = functional.batch_norm(x.float(), *averages(4), *affine, True, MOMENTUM, EPS)
    assert torch.equal(batch_norm(x.float(), averages(4), affine, MOMENTUM, EPS), wanted)
    assert torch.equal(batch_norm(x.float(), averages(4), affine, MOMENTUM, EPS, rectified=True), wanted.relu())
    without = functional.batch_norm(x, None, None, None, None, True, MOMENTUM, EPS)
    assert torch.equal(batch_norm(x, (None, None), (None, None), MOMENTUM, EPS), without)
    by_torch = functional.batch_norm(x, *averages(4), *affine, True, MOMENTUM, EPS)
    monkeypatch.setattr(halves, "FEW", 0)
    assert torch.equal(batch_norm(x, averages(4), affine, MOMENTUM, EPS), by_torch)


def test_channels_that_do_not_agree_are_refused():
    with pytest.raises(RuntimeError, match="running_mean"):
        batch_norm(torch.zeros(8, 5).bfloat16(), averages(4), averages(4), MOMENTUM, EPS)


def test_stacked_members_are_normalised_as_each_alone(seed):
    torch.manual_seed(seed)
    layer, rows = BatchNorm(4), torch.randn(2, 40, 4)
    stacked = {name: torch.stack([part, 2 * part + 1]) for name, part in layer.state_dict().items() if part.ndim}
    alone = [functional_call(layer, {k: v[i].clone() for k, v in stacked.items()}, (rows[i],)) for i in range(2)]
    both = torch.vmap(lambda values, rows: functional_call(layer, values, (rows,)))(stacked, rows)
    torch.testing.assert_close(both, torch.stack(alone))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
def test_derivatives_along_a_direction_are_those_of_float32(seed):
    """By transformation of the function and with dual numbers, as torch has them."""
    x, along, affine = drawn((40, 4), seed)
    x = x.detach()

    def of(rows):
        return functional.batch_norm(rows, None, None, *affine, True, 0.0, EPS)

    _, wanted = jvp(of, (x.float(),), (along.float(),))
    _, own = jvp(lambda rows: batch_norm(rows, averages(4), affine, 0.0, EPS), (x,), (along,))
    with forward_ad.dual_level():
        out = batch_norm(forward_ad.make_dual(x, along), averages(4), affine, 0.0, EPS)
        tangent = forward_ad.unpack_dual(out).tangent
    for direction in (own, tangent):
        assert (direction.float() - wanted).norm() <= 0.05 * wanted.norm()
