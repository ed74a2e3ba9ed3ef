"""The scan of a diagonal linear recurrence, one step after the other in meaning and many at once in work.

    h_t = λ ⊙ h_{t−1} + u_t,   h_0 = 0

Its gradients are scans too: with g_t = ∂L/∂h_t + λ̄ ⊙ g_{t+1}, read from the end, ∂L/∂u_t = g_t and
∂L/∂λ = Σ_t h̄_{t−1} ⊙ g_t.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["scan"]

COMPILED = (torch.float32, torch.float64, torch.complex64, torch.complex128)
"""Numbers that the compiled loop takes."""


def scan(decay: Tensor, inputs: Tensor, *, reverse: bool = False) -> Tensor:
    """All h_t = λ ⊙ h_{t−1} + u_t for inputs u (…, t, d) and decays λ, (d,) or (…, d); real or complex.

    With `reverse` it goes from the last step to the first: h_t = λ ⊙ h_{t+1} + u_t. On a processor this is a compiled
    loop, which takes as long as reading the numbers. Where a step is a call to a device, steps are taken in chunks side
    by side: first what each chunk leaves behind, then that carried from chunk to chunk, then all steps from the right
    start. That is three loops of √t in place of one of t.

    >>> scan(torch.tensor([0.5]), torch.ones(4, 1)).ravel().tolist()
    [1.0, 1.5, 1.75, 1.875]
    """
    states: Tensor = _Scan.apply(decay, inputs, reverse)  # type: ignore[no-untyped-call]
    return states


class _Scan(Function):
    """`scan` with its derivatives, which are scans: so there are derivatives of any order, and under `vmap`."""

    @staticmethod
    def forward(decay: Tensor, inputs: Tensor, reverse: bool) -> Tensor:
        decay, inputs = decay.resolve_conj(), inputs.resolve_conj()
        if not inputs.numel():
            return torch.empty_like(inputs)
        if _compiles(decay, inputs):
            return _compiled(decay, inputs, reverse)
        return _in_chunks(decay, inputs, reverse)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
        decay, _, ctx.reverse = inputs
        ctx.save_for_backward(decay, output)
        ctx.save_for_forward(decay, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        decay, h = ctx.saved_tensors
        if not torch.is_grad_enabled() and _compiles(decay, gradient) and h.numel():
            return *_compiled_gradients(decay, gradient, h, ctx.reverse), None
        g = scan(decay.conj(), gradient, reverse=not ctx.reverse)
        if not ctx.needs_input_grad[0]:
            return None, g, None
        before, here = (h[..., 1:, :], g[..., :-1, :]) if ctx.reverse else (h[..., :-1, :], g[..., 1:, :])
        return (before.conj() * here).sum(-2).sum_to_size(decay.shape), g, None

    @staticmethod
    def jvp(ctx: Any, decay_change: Tensor | None, change: Tensor | None, _: None) -> Tensor:
        decay, h = ctx.saved_tensors
        total = torch.zeros_like(h) if change is None else change
        if decay_change is not None:
            start = torch.zeros_like(h[..., :1, :])
            before = torch.cat([h[..., 1:, :], start] if ctx.reverse else [start, h[..., :-1, :]], -2)
            total = total + decay_change.unsqueeze(-2) * before
        return scan(decay, total, reverse=ctx.reverse)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], decay: Tensor, inputs: Tensor, reverse: bool) -> Any:
        """The new axis comes first, like any other axis in front."""
        decay, inputs = (
            part.expand(info.batch_size, *part.shape) if axis is None else part.movedim(axis, 0)
            for part, axis in zip((decay, inputs), in_dims, strict=False)
        )
        between = [1] * (inputs.ndim - 1 - decay.ndim)
        return scan(decay.reshape(len(decay), *between, *decay.shape[1:]), inputs, reverse=reverse), 0


def _compiles(decay: Tensor, inputs: Tensor) -> bool:
    return inputs.device.type == "cpu" and decay.dtype == inputs.dtype in COMPILED


def _compiled(decay: Tensor, inputs: Tensor, reverse: bool) -> Tensor:
    from .compiled.scan_loop import scan_ahead, scan_back  # only where it is needed: numba loads slowly

    u = inputs.detach().contiguous()
    out = torch.empty_like(u)
    (scan_back if reverse else scan_ahead)(_decay_by_row(decay, u), _flat(u), _flat(out))
    return out


def _compiled_gradients(decay: Tensor, gradient: Tensor, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """∂L/∂λ and ∂L/∂u in one pass over the steps."""
    from .compiled.scan_loop import gradients_of_ahead, gradients_of_back

    gradient = gradient.resolve_conj().contiguous()
    g, rate = torch.empty_like(gradient), torch.empty_like(gradient[..., 0, :])
    loop = gradients_of_back if reverse else gradients_of_ahead
    loop(
        _decay_by_row(decay, gradient),
        _flat(gradient),
        _flat(h.detach().contiguous()),
        _flat(g),
        _flat(rate.unsqueeze(-2))[:, 0],
    )
    return rate.sum_to_size(decay.shape), g


def _decay_by_row(decay: Tensor, steps: Tensor) -> np.ndarray:
    """λ of every row (…, t, d), as (rows, d)."""
    many = decay.detach().resolve_conj().expand_as(steps[..., 0, :])
    return many.reshape(-1, steps.shape[-1]).contiguous().numpy()


def _flat(steps: Tensor) -> np.ndarray:
    """(…, t, d) as (rows, t, d), the same numbers."""
    return steps.view(-1, *steps.shape[-2:]).numpy()


def _in_chunks(decay: Tensor, inputs: Tensor, reverse: bool) -> Tensor:
    out = torch.empty_like(inputs)
    steps = inputs.shape[-2]
    decay = decay.expand_as(inputs[..., 0, :])
    chunks = math.isqrt(steps)
    size = steps // chunks
    whole = slice(steps - chunks * size, None) if reverse else slice(chunks * size)
    rest = slice(steps - chunks * size) if reverse else slice(chunks * size, None)
    many = decay.unsqueeze(-2)  # (…, chunks, d)
    u, h = (part[..., whole, :].unflatten(-2, (chunks, size)) for part in (inputs, out))
    state = _loop(many, u, h, _carried(many, u, reverse), reverse)
    last = state[..., 0, :] if reverse else state[..., -1, :]
    _loop(decay, inputs[..., rest, :], out[..., rest, :], last, reverse)
    return out


def _loop(decay: Tensor, u: Tensor, h: Tensor, state: Tensor, reverse: bool) -> Tensor:
    """Fill h (…, t, d) step by step from the state before, and give the last one."""
    order = slice(None, None, -1 if reverse else 1)
    for new, out in zip(u.unbind(-2)[order], h.unbind(-2)[order], strict=True):
        state = torch.addcmul(new, decay, state, out=out)
    return state


def _carried(decay: Tensor, u: Tensor, reverse: bool) -> Tensor:
    """The state in which each chunk of u (…, chunks, t, d) starts."""
    order = slice(None, None, -1 if reverse else 1)
    steps = u.unbind(-2)[order]
    left = steps[0].clone()
    for new in steps[1:]:
        torch.addcmul(new, decay, left, out=left)
    power = (decay ** len(steps)).expand_as(left)
    states = [torch.zeros_like(left[..., 0, :])]
    for own, over in list(zip(left.unbind(-2)[order], power.unbind(-2)[order], strict=True))[:-1]:
        states.append(torch.addcmul(own, over, states[-1]))
    return torch.stack(states[order], -2)
