"""Compiled scans are the recursions, and what they pass back are the gradients of automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.networks.layers.compiled.scan_loop import gradients_of_ahead, gradients_of_back, scan_ahead, scan_back

ROWS, STEPS, WIDTH = 2, 6, 3


def draw(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == np.complex128 else 0.0)
    return values.astype(dtype)


def recursion(decay, u, back):
    """h_t = λ h_{t∓1} + u_t in torch, one step after the other."""
    order = range(STEPS - 1, -1, -1) if back else range(STEPS)
    states, h = {}, torch.zeros_like(u[:, 0])
    for t in order:
        h = decay * h + u[:, t]
        states[t] = h
    return torch.stack([states[t] for t in range(STEPS)], 1)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("back", [False, True], ids=["ahead", "back"])
def test_scans_and_their_gradients(dtype, back):
    decay, u = 0.5 * draw(dtype, ROWS, WIDTH), draw(dtype, ROWS, STEPS, WIDTH, seed=1)
    h = np.empty_like(u)
    (scan_back if back else scan_ahead)(decay, u, h)
    leaves = [torch.from_numpy(value.copy()).requires_grad_() for value in (decay, u)]
    expected = recursion(*leaves, back)
    np.testing.assert_allclose(h, expected.detach(), rtol=1e-10, atol=1e-12)
    seed = draw(dtype, ROWS, STEPS, WIDTH, seed=2)
    to_u, to_decay = np.empty_like(u), np.empty_like(decay)
    (gradients_of_back if back else gradients_of_ahead)(decay, seed, h, to_u, to_decay)
    wanted = torch.autograd.grad(expected, leaves, torch.from_numpy(seed))
    np.testing.assert_allclose(to_decay, wanted[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(to_u, wanted[1], rtol=1e-9, atol=1e-11)
