"""The parts of a compiled step are torch's operations, and a step of blocks that change nothing keeps its keys."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from likely.networks.layers.compiled.encoder_loop import (
    _activate,
    _affine,
    _attend,
    _exponential,
    _normalise,
    step_blocks,
)

WIDTH, HEADS, ROOM = 6, 2, 9


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", range(1, 10))
def test_affine_maps_of_rows_in_fours_and_of_the_rest(rows):
    x, weight, bias = draw(rows, WIDTH), draw(5, WIDTH, seed=1), draw(5, seed=2)
    y = torch.empty(rows, 5)
    _affine(x.numpy(), weight.numpy(), bias.numpy(), y.numpy())
    torch.testing.assert_close(y, functional.linear(x, weight, bias), rtol=1e-5, atol=1e-5)


def test_layer_norms_also_in_place():
    x, norm = 3 * draw(4, WIDTH) + 5, draw(2, WIDTH, seed=1)
    expected = functional.layer_norm(x, (WIDTH,), norm[0], norm[1], 1e-5)
    y = torch.empty_like(x)
    _normalise(x.numpy(), norm.numpy(), 1e-5, y.numpy())
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
    _normalise(x.numpy(), norm.numpy(), 1e-5, x.numpy())
    torch.testing.assert_close(x, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("large", [1.0, 30.0])
def test_each_step_looks_at_itself_and_what_was_before(large):
    """Also at scores so large that their exponentials would overflow."""
    rows, size = 3, WIDTH // HEADS
    three = draw(ROOM, rows, 3 * WIDTH)
    three[..., :WIDTH] *= large
    keys, values = torch.full((2, rows, 1, HEADS, ROOM, size), math.nan)
    seen = torch.empty(ROOM, rows, WIDTH)
    for step in range(ROOM):
        _attend(three[step].numpy(), step, keys.numpy(), values.numpy(), 0, 0.7, seen[step].numpy())
    query, key, value = (part.unflatten(-1, (HEADS, size)).permute(1, 2, 0, 3) for part in three.chunk(3, -1))
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.7)
    torch.testing.assert_close(seen, expected.permute(2, 0, 1, 3).flatten(2), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(keys[:, 0], key)
    torch.testing.assert_close(values[:, 0], value)


def test_exponentials_and_normal_tails_are_right_to_float32():
    """GELU of numbers far and near, and eˣ down to where it is no longer a normal number."""
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, -1e-6, 1e-6])])
    y = x.clone().unsqueeze(0)
    _activate(y.numpy(), False)
    torch.testing.assert_close(y[0], functional.gelu(x), rtol=1e-5, atol=2e-6)
    y = x.clone().unsqueeze(0)
    _activate(y.numpy(), True)
    torch.testing.assert_close(y[0], x.relu(), rtol=0, atol=0)
    y = -x.abs() * 8
    expected = y.double().exp().float()
    _exponential(y.numpy(), torch.empty(len(y), dtype=torch.int32).numpy())
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=1e-36)


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize("rectified", [True, False])
def test_a_step_of_one_block_is_its_equations(pre, rectified):
    """One step alone sees itself, so attention is the map of the values: x + W_o v, then x + W₂ φ(W₁ x)."""
    rows, hidden = 5, 7
    shapes = {"joint": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "inner": (hidden, WIDTH), "outer": (WIDTH, hidden)}
    weights = {name: 0.5 * draw(1, *shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    biases, norms = draw(1, 3 * WIDTH + WIDTH + hidden + WIDTH, seed=4), draw(1, 2, 2, WIDTH, seed=5)
    keys, values = torch.zeros(2, rows, 1, HEADS, 1, WIDTH // HEADS)
    x = draw(rows, WIDTH, seed=6)
    y = x.clone()
    arrays = [part.numpy() for part in (keys, values, norms, biases, *weights.values())]
    step_blocks(y.numpy(), 0, *arrays, 1.0, 1e-5, pre, rectified)

    def norm(h, number):
        return functional.layer_norm(h, (WIDTH,), norms[0, number, 0], norms[0, number, 1], 1e-5)

    of_joint, of_out, of_inner, of_outer = biases[0].split([3 * WIDTH, WIDTH, hidden, WIDTH])
    joint, out, inner, outer = (part[0] for part in weights.values())
    value = functional.linear(norm(x, 0) if pre else x, joint, of_joint)[:, 2 * WIDTH :]
    h = x + functional.linear(value, out, of_out)
    h = h if pre else norm(h, 0)
    active = torch.relu if rectified else functional.gelu
    change = functional.linear(active(functional.linear(norm(h, 1) if pre else h, inner, of_inner)), outer, of_outer)
    torch.testing.assert_close(y, h + change if pre else norm(h + change, 1), rtol=1e-4, atol=1e-4)
