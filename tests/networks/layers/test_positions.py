"""Positions: the tables, what a shift does to them, and sequences that are too long."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import DataError
from likely.networks.layers.positions import (
    LearnedPositions,
    RelativePositions,
    SinusoidalPositions,
    join_positions,
    sinusoids,
)


@pytest.mark.parametrize("width", [1, 4, 7])
def test_sinusoids_are_their_equation(width):
    table = sinusoids(20, width)
    for i in range(20):
        for column in range(width):
            angle = i / 10_000 ** (2 * (column // 2) / width)
            expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
            assert table[i, column].item() == pytest.approx(expected, abs=1e-12)


def test_a_shift_of_sinusoids_is_the_same_rotation_at_every_place():
    """(sin, cos)(i + k) is (sin, cos)(i) turned by kω, so products of two places depend on their distance alone."""
    table = sinusoids(60, 8)
    turn = sinusoids(18, 8)[17].view(4, 2)
    sine, cosine = table[:-17].view(-1, 4, 2).unbind(-1)
    turned = torch.stack([sine * turn[:, 1] + cosine * turn[:, 0], cosine * turn[:, 1] - sine * turn[:, 0]], -1)
    torch.testing.assert_close(turned.flatten(1), table[17:])
    diagonal = (table @ table.T).diagonal(17)
    torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal))


def test_sinusoids_follow_the_input():
    positions = SinusoidalPositions(4)
    assert positions(torch.zeros(1, 3, 2, dtype=torch.float64)).dtype == torch.float64
    assert not list(positions.parameters())


def test_learned_positions_are_the_first_rows_of_the_table():
    positions = LearnedPositions(5, 3)
    torch.testing.assert_close(positions(torch.zeros(2, 4, 9)), positions.weight[:4])
    with pytest.raises(DataError, match=r"X has a sequence of 6 steps, but positions were learned for 5.*longest=6"):
        positions(torch.zeros(2, 6, 9))


def test_they_are_added_or_concatenated():
    x, positions = torch.randn(2, 3, 4), torch.randn(3, 4)
    torch.testing.assert_close(join_positions(x, positions, "add")[1], x[1] + positions)
    both = join_positions(x, positions[:, :2], "concatenate")
    torch.testing.assert_close(both[1], torch.cat([x[1], positions[:, :2]], 1))


@pytest.mark.parametrize(("queries", "keys"), [(6, 6), (3, 7), (7, 3), (1, 1)])
@pytest.mark.parametrize("reach", [0, 2, 10])
def test_relative_biases_are_those_of_clipped_distances(reach, queries, keys):
    positions = RelativePositions(2, reach)
    bias = positions(queries, keys)
    assert bias.shape == (2, queries, keys)
    for i in range(queries):
        for j in range(keys):
            distance = max(-reach, min(reach, i - j))
            torch.testing.assert_close(bias[:, i, j], positions.weight[:, distance + reach])


def test_a_shift_of_all_places_changes_no_relative_bias():
    bias = RelativePositions(3, 4)(9, 9)
    assert torch.equal(bias[:, 2:, 2:], bias[:, :-2, :-2])


def test_a_class_token_has_no_place():
    positions = RelativePositions(2, 3, token=True)
    bias = positions(6, 6)
    plain = RelativePositions(2, 3)
    plain.weight.data.copy_(positions.weight.data)
    torch.testing.assert_close(bias[:, :-1, :-1], plain(5, 5))
    torch.testing.assert_close(bias[:, :-1, -1], positions.token[:, :1].expand(2, 5))
    torch.testing.assert_close(bias[:, -1, :-1], positions.token[:, 1:].expand(2, 5))
    assert (bias[:, -1, -1] == 0).all()


def test_each_distance_has_the_gradient_of_all_its_pairs():
    positions = RelativePositions(1, 2)
    positions(5, 5).sum().backward()
    assert positions.weight.grad.tolist() == [[3 + 2 + 1, 4, 5, 4, 3 + 2 + 1]]
