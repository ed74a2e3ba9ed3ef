"""Steps of sequences of equal and of different lengths, pooled by hand, and tokens that are checked."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.data.rows import Ragged
from likely.networks.layers.steps import (
    Embedding,
    at_each,
    check_tokens,
    one_step,
    pooled,
    refuse_steps,
    step_features,
    steps_of,
)

LENGTHS = (3, 1, 4)
SEQUENCES = [torch.randn(t, 2, generator=torch.Generator().manual_seed(t)) for t in LENGTHS]
RAGGED = Ragged.of(SEQUENCES)


def test_ragged_steps_are_padded_and_come_back_flat():
    steps, present = steps_of(RAGGED)
    assert steps.shape == (3, 4, 2)
    assert present.sum(1).tolist() == list(LENGTHS)
    for row, sequence in enumerate(SEQUENCES):
        assert torch.equal(steps[row, : len(sequence)], sequence.to(steps))
    assert torch.equal(at_each(RAGGED, steps), torch.cat(SEQUENCES).to(steps))
    assert at_each(steps, steps) is steps


@pytest.mark.parametrize("how", ["last", "mean", "max", "sum"])
def test_pooling_is_that_of_each_sequence_alone(how):
    """Whatever stands after the end of a sequence."""
    steps, present = steps_of(RAGGED)
    steps = torch.where(present[..., None], steps, 1e9)
    by_hand = {
        "last": lambda s: s[-1],
        "mean": lambda s: s.mean(0),
        "max": lambda s: s.amax(0),
        "sum": lambda s: s.sum(0),
    }
    expected = torch.stack([by_hand[how](sequence.to(steps)) for sequence in SEQUENCES])
    torch.testing.assert_close(pooled(steps, present, how), expected)
    torch.testing.assert_close(pooled(SEQUENCES[0][None], None, how)[0], by_hand[how](SEQUENCES[0]))


def test_single_numbers_are_steps_of_one_feature():
    assert steps_of(torch.zeros(2, 5))[0].shape == (2, 5, 1)
    assert one_step(torch.zeros(4)).shape == (4, 1)
    assert (step_features((10, 3)), step_features((10,))) == (3, 1)
    with pytest.raises(ValueError, match=r"it takes token numbers \(n, steps\); found shape \(2, 5, 3, 1\)"):
        steps_of(torch.zeros(2, 5, 3, 1), tokens=True)


def test_tokens_are_rows_of_a_table_and_others_are_named():
    table = Embedding(5, 3)
    torch.testing.assert_close(table(torch.tensor([[0.0, 4.0]])), table.weight[[0, 4]][None])
    check_tokens(torch.tensor([[0, 4]]), 5)
    for x, where in (
        (torch.tensor([[0, 1], [5, 0]]), "token 5 at row 1, step 0"),
        (torch.tensor([[0.5]]), "token 0.5 at row 0, step 0"),
        (Ragged.of([[1, 2], [3, -1]]), r"token -1 at X\[1\], step 1"),
    ):
        with pytest.raises(DataError, match=f"{where}; with tokens=5 they are 0 … 4"):
            check_tokens(x, 5)


def test_answers_of_all_steps_cannot_be_asked_step_by_step():
    refuse_steps("last")
    with pytest.raises(SpecError, match='it needs output="last" or "each"; found "max"'):
        refuse_steps("max")
