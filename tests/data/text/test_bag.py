"""Bags of words and pairs, against counting by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from likely.core.errors import DataError, ModelFileError, SpecError
from likely.data.text import Bag, Words
from likely.data.text.bag import BagVocabulary

TEXTS = ["so warm so warm", "so dull", "a warm film", ""]


def counted(text, names, pairs):
    """Each column's presence in a text, divided by √(how many are there)."""
    words = text.split()
    own = {*words, *(" ".join(pair) for pair in pairwise(words) if pairs)}
    row = np.array([name in own for name in names], dtype=float)
    return row / max(1.0, row.sum()) ** 0.5


@pytest.mark.parametrize("pairs", [True, False])
def test_rows_tell_which_words_and_pairs_a_text_has(pairs):
    bag = Bag(Words(), pairs=pairs).fit(TEXTS)
    assert len(bag.names) == bag.size == sum(bag.kinds) == (10 if pairs else 5)
    for texts in (TEXTS, ["warm so cold", "cold", "so warm film"]):  # new words, also between known ones, are not known
        rows = bag.rows(texts).dense().numpy()
        np.testing.assert_allclose(rows, [counted(text, bag.names, pairs) for text in texts])


def test_rare_columns_are_left_out():
    bag = Bag(Words(), min_count=2).fit(TEXTS)
    assert set(bag.names) == {"so", "warm"}
    with pytest.raises(DataError, match="No word is in 9 texts or more"):
        Bag(Words(), min_count=9).fit(TEXTS)
    with pytest.raises(SpecError, match="min_count must be a positive integer"):
        Bag(min_count=0)


def test_a_bag_comes_back_from_its_file_and_another_is_refused():
    bag = Bag(Words()).fit(TEXTS)
    data = bag.to_json()
    assert BagVocabulary.from_json(data) == bag
    for wrong in ({"codes": "all"}, {"codes": [2, 1]}, {"codes": [10_000]}, {"pairs": 1}):
        with pytest.raises(ModelFileError, match="bag of words"):
            BagVocabulary.from_json(data | wrong)
