from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.core.errors import DataError, ModelFileError, SpecError
from likely.data.text import Characters, vocabulary_from_json

ANY = st.text(st.characters(exclude_categories=()), min_size=1)
"""Any string of Python's, lone surrogates included."""


@given(ANY)
def test_any_text_comes_back_from_its_own_characters(text):
    vocabulary = Characters().fit(text)
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.size == len(set(text))
    assert vocabulary_from_json(vocabulary.to_json()) == vocabulary


@given(ANY, ANY)
def test_the_order_of_tokens_is_that_of_code_points(one, two):
    vocabulary = Characters().fit([one, two])
    characters = [vocabulary.decode([token]) for token in range(vocabulary.size)]
    assert characters == sorted(set(one + two))


def test_an_unknown_character_is_named_with_its_place():
    vocabulary = Characters().fit("abc")
    for text, message in (
        ("abé", "text has the character 'é' at position 2"),
        ("\x00", "text has the character '\\x00'"),
    ):
        with pytest.raises(DataError, match=re.escape(message)):
            vocabulary.encode(text)
    with pytest.raises(DataError, match=r"texts\[3\] has the character 'z' at position 0, which no training text has"):
        vocabulary.encode("z", "texts[3]")


def test_unknown_characters_may_share_a_token():
    vocabulary = Characters(unknown=True).fit("abc")
    np.testing.assert_array_equal(vocabulary.encode("axbé"), [0, 3, 1, 3])
    assert vocabulary.decode([0, 3]) == "a\ufffd"
    assert vocabulary.size == 4
    with pytest.raises(SpecError, match=r"Characters\(unknown=2\): unknown must be True or False"):
        Characters(unknown=2)


@pytest.mark.parametrize(
    "change", [{"points": [2, 1]}, {"points": [1, 1]}, {"points": []}, {"points": [0x110000]}, {"unknown": 1}]
)
def test_a_file_with_other_points_is_refused(change):
    with pytest.raises(ModelFileError, match="The file has a vocabulary"):
        vocabulary_from_json(Characters().fit("abc").to_json() | change)
