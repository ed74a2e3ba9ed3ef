"""The loops of batch norm: rounding is torch's, and sums lose nothing where numbers are far from 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.networks.layers.compiled import batch_norm_loop as loop
from likely.networks.layers.compiled.batch_norm_loop import differentiate, standardise


def bits(values):
    return values.bfloat16().view(torch.uint16).numpy()


def numbers(lines):
    return torch.from_numpy(lines).view(torch.bfloat16).double()


def test_numbers_come_and_go_as_torch_rounds_them(seed):
    """Any float32: a number, infinite, subnormal, in the middle between two in bfloat16, NaN."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(2**32, size=2_000, dtype=np.uint32)
    middle = (any_bits & np.uint32(0xFFFF0000)) | np.uint32(0x8000)
    values = np.concatenate([any_bits, middle, [0x7F800000, 0xFF800000, 0x80000000, 1]]).astype(np.uint32)
    values = torch.from_numpy(values.view(np.float32))
    values = values[~values.isnan()]
    halves = np.array([loop._rounded(value) for value in values.numpy()], np.uint16)
    assert np.array_equal(halves, bits(values))
    back = np.array([loop.widened(half) for half in halves], np.float32)
    assert np.array_equal(back, values.bfloat16().float().numpy())
    assert np.isnan([loop.widened(loop._rounded(np.float32(sign * np.nan))) for sign in (1, -1)]).all()


@pytest.mark.parametrize("many", [1, 4])
def test_moments_far_from_zero(many, seed):
    """Whole numbers around 200 times their deviation: sums about the mean keep all digits."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.integers(128, 256, size=(4_000, 3)) // 2 * 2 + 0.0)
    x[:, 0] = torch.from_numpy(254 + rng.integers(2, size=4_000))
    lines = bits(x).reshape(-1, 3 * many)
    of, out = np.empty((3, 3), np.float32), np.empty_like(lines)
    affine = np.ones(3, np.float32), np.zeros(3, np.float32)
    standardise(lines, affine, 0.0, False, out, of)
    np.testing.assert_allclose(of[0], x.mean(0), rtol=1e-6)
    np.testing.assert_allclose(of[1], x.var(0, correction=0), rtol=1e-4)
    np.testing.assert_allclose(of[2], x.std(0, correction=0) ** -1, rtol=1e-4)
    z = (x - x.mean(0)) / x.std(0, correction=0)
    np.testing.assert_allclose(numbers(out).reshape(-1, 3), z, rtol=2**-8, atol=1e-3)


def test_how_many_rows_a_line_has_does_not_matter(seed):
    """Up to the order of sums in float32, so that one number in thousands may be rounded the other way."""
    torch.manual_seed(seed)
    x, gradient, affine = torch.randn(96, 5), torch.randn(96, 5), tuple(torch.randn(2, 5).numpy())
    results = []
    for many in (1, 8, 32):
        lines = [bits(part).reshape(-1, 5 * many) for part in (x, gradient)]
        out, by_x = np.empty_like(lines[0]), np.empty_like(lines[0])
        of, by_affine = np.empty((3, 5), np.float32), np.empty((2, 5), np.float32)
        standardise(lines[0], affine, 1e-5, False, out, of)
        differentiate(lines[1], lines[0], affine, of, False, by_x, by_affine)
        results.append((numbers(out).flatten(), of, numbers(by_x).flatten(), by_affine))
    for other in results[1:]:
        for own, same in zip(results[0], other, strict=True):
            np.testing.assert_allclose(own, same, rtol=2**-7, atol=1e-4)
