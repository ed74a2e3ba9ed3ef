from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.models.language import co_occurrence
from likely.models.language.co_occurrence import co_occurrences
from likely.models.language.sentences import read_sentences


@pytest.mark.parametrize("by_distance", [False, True])
@pytest.mark.parametrize("block", [1, 1 << 22])
def test_counts_are_those_of_a_plain_loop(by_distance, block, monkeypatch):
    monkeypatch.setattr(co_occurrence, "BLOCK", block)
    rng = np.random.default_rng(0)
    rows = [[*rng.choice([*"abcde"], size)] for size in (7, 1, 4, 9)]
    text = read_sentences([[str(word) for word in row] for row in rows], 1, np.array([1.0, 1.0, 2.0, 0.5]))
    pairs = co_occurrences(text, 3, by_distance=by_distance)
    table, expected = np.zeros((5, 5)), np.zeros((5, 5))
    table[pairs.words, pairs.neighbours] = pairs.counts
    for row, weight in zip(rows, text.weight, strict=True):
        numbers = [text.vocabulary.index(word) for word in row]
        for i, j in itertools.permutations(range(len(row)), 2):
            if abs(i - j) <= 3:
                expected[numbers[i], numbers[j]] += weight / (abs(i - j) if by_distance else 1)
    np.testing.assert_allclose(table, expected)
    np.testing.assert_allclose(table, table.T)
