"""The scan is the loop, forwards and backwards, in value and in every derivative."""

from __future__ import annotations

import sys

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacrev, vmap

from likely.networks.layers.scan import scan

FILE = sys.modules[scan.__module__]

SHAPES = [(2, 7, 3), (1, 100, 2), (3, 1, 2), (2, 33, 64), (20, 30, 64), (4, 2, 5), (2, 3, 50, 4)]


def loop(decay, inputs):
    """h_t = λ ⊙ h_{t−1} + u_t, as it is written."""
    h, out = torch.zeros_like(inputs[..., 0, :]), []
    for u in inputs.unbind(-2):
        h = decay * h + u
        out.append(h)
    return torch.stack(out, -2)


def made(shape, dtype=torch.complex128):
    torch.manual_seed(0)
    decay = torch.polar(torch.rand(shape[-1]).double() ** 0.1, 6 * torch.rand(shape[-1]).double())
    return decay.to(dtype).requires_grad_(), torch.randn(shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "near"), [(torch.complex64, 1e-5), (torch.complex128, 1e-10)])
def test_the_scan_and_its_gradients_are_those_of_the_loop(shape, reverse, dtype, near):
    decay, inputs = made(shape, dtype)
    scanned = scan(decay, inputs, reverse=reverse)
    wanted = loop(decay, inputs.flip(-2)).flip(-2) if reverse else loop(decay, inputs)
    towards = torch.randn_like(scanned)
    gradients = [torch.autograd.grad((out * towards).real.sum(), (decay, inputs)) for out in (scanned, wanted)]
    for own, other in zip((scanned, *gradients[0]), (wanted, *gradients[1]), strict=True):
        assert (own - other).abs().max() <= near * max(1, other.abs().max())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chunks_and_the_compiled_loop_agree(shape, reverse, monkeypatch):
    decay, inputs = made(shape)
    compiled = scan(decay, inputs, reverse=reverse)
    monkeypatch.setattr(FILE, "COMPILED", ())
    torch.testing.assert_close(compiled, scan(decay, inputs, reverse=reverse), rtol=0, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_compiled_gradients_are_those_that_can_be_differentiated_again(reverse, own):
    decay, inputs = made((3, 11, 4))
    decay = decay.detach().expand(3, 4).clone().requires_grad_() if own else decay
    total = (scan(decay, inputs, reverse=reverse) ** 2).real.sum()
    compiled = torch.autograd.grad(total, (decay, inputs), retain_graph=True)
    again = torch.autograd.grad(total, (decay, inputs), create_graph=True)
    for one, other in zip(compiled, again, strict=True):
        torch.testing.assert_close(one, other.detach())


def test_inputs_need_not_be_contiguous():
    decay, inputs = made((4, 9, 5))
    turned = inputs.detach().transpose(0, 2)  # (5, 9, 4)
    torch.testing.assert_close(scan(decay[:4].detach(), turned), loop(decay[:4].detach(), turned))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_derivatives_of_first_and_second_order_and_forwards(dtype):
    torch.manual_seed(0)
    decay = (torch.rand(2).double() * (1 if dtype.is_floating_point else 0.6 + 0.8j)).to(dtype).requires_grad_()
    inputs = torch.randn(2, 5, 2, dtype=dtype).requires_grad_()
    assert gradcheck(scan, (decay, inputs), check_forward_ad=True)
    assert gradgradcheck(scan, (decay, inputs))


def test_it_runs_under_vmap():
    torch.manual_seed(0)
    decays, inputs = torch.rand(4, 3).double(), torch.randn(5, 9, 3).double()
    together = vmap(scan, in_dims=(0, None))(decays, inputs)
    torch.testing.assert_close(together, torch.stack([loop(decay, inputs) for decay in decays]))
    gradients = vmap(grad(lambda d: scan(d, inputs).square().sum()))(decays)
    apart = torch.stack([grad(lambda d: loop(d, inputs).square().sum())(decay) for decay in decays])
    torch.testing.assert_close(gradients, apart)
    jacobians = vmap(jacrev(scan), in_dims=(None, 0))(decays[0], inputs)
    torch.testing.assert_close(jacobians, torch.stack([jacrev(loop)(decays[0], row) for row in inputs]))
    rows = vmap(scan)(decays, inputs[:4])
    torch.testing.assert_close(rows, torch.stack([loop(d, u) for d, u in zip(decays, inputs[:4], strict=True)]))


def test_a_step_changes_only_those_after_it():
    decay, inputs = made((2, 40, 3))
    gradient = torch.autograd.grad(scan(decay, inputs)[:, 17].abs().sum(), inputs)[0]
    assert bool((gradient[:, 18:] == 0).all())
    assert bool((gradient[:, :18] != 0).all())


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 0, 3)])
def test_nothing_gives_nothing(shape):
    assert scan(torch.ones(3), torch.ones(shape)).shape == shape
