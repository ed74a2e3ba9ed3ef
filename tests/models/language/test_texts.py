from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.data.text import Characters
from likely.models.language.texts import joined, kept


def test_boundaries_stand_before_texts_and_after_those_that_end():
    vocabulary = Characters().fit("abc")
    values, offsets = joined(vocabulary, ["cab", "a"], False)
    assert (values.tolist(), offsets.tolist()) == ([3, 2, 0, 1, 3, 0], [0, 4, 6])
    values, offsets = kept(*joined(vocabulary, ["cab", "a"], True), np.array([False, True]))
    assert (values.tolist(), offsets.tolist()) == ([3, 0, 3], [0, 3])


def test_an_unknown_character_is_named_with_its_text():
    vocabulary = Characters().fit("abc")
    with pytest.raises(DataError, match=r"texts\[1\] has the character 'x' at position 1"):
        joined(vocabulary, ["a", "bx"], True)
    with pytest.raises(DataError, match=r"^prompt has the character 'x' at position 0"):
        joined(vocabulary, ["x"], True, "prompt")
