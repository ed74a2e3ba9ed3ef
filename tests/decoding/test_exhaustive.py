from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.decoding import Exhaustive


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("end", [None, 0, 2])
def test_it_is_the_best_of_all_sequences(end, penalty, table):
    decoded = Exhaustive(penalty).decode(table.step, table.start(), table.first, 4, end=end)
    for row in range(4):
        best = table.best(row, 4, end, penalty=penalty)
        assert tuple(token for token in decoded.tokens[row].tolist() if token >= 0) == best


def test_too_many_sequences_are_refused_with_what_would_do(table):
    with pytest.raises(DataError, match=r"Exhaustive would look at 3\^20 sequences for each of 4 rows; .* Use Beam"):
        Exhaustive().decode(table.step, table.start(), table.first, 20)
    with pytest.raises(SpecError, match="length_penalty must be 0 or more"):
        Exhaustive(-1.0)


def test_prompts_of_several_lengths(table):
    prompt = torch.tensor([[1, 2], [0, -1], [-1, -1], [2, 0]])
    decoded = Exhaustive().decode(table.step, table.start(), table.first, 3, prompt=prompt)
    for row in range(4):
        own = tuple(token for token in prompt[row].tolist() if token >= 0)
        chosen = tuple(token for token in decoded.tokens[row].tolist() if token >= 0)
        assert chosen == table.best(row, 3, prompt=own)
