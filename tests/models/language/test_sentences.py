"""Sentences at the door of word vectors."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.models.language.sentences import read_sentences, read_words


def test_strings_and_lists_of_words_are_alike():
    text = ["a b  a\tc\n", "b c c"]
    one, other = read_sentences(text, 1), read_sentences([row.split() for row in text], 1)
    assert one.vocabulary == other.vocabulary == ["c", "a", "b"]
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_array_equal(one.offsets, [0, 4, 7])


def test_words_that_are_rare_are_not_there():
    text = read_sentences(["a b a", "rare", "b"], 2)
    assert (text.vocabulary, text.counts.tolist()) == (["a", "b"], [2, 2])
    np.testing.assert_array_equal(text.tokens, [0, 1, 0, 1])
    np.testing.assert_array_equal(text.offsets, [0, 3, 3, 4])  # a sentence may be left empty


def test_bad_text_is_named():
    for text, message in (
        ("one string", "X is str; it must be a list of sentences"),
        (None, "X is NoneType"),
        ([], "X is empty"),
        (["a", 3], r"X\[1\] is not a sentence"),
        ([["a", 3]], r"X\[0\] is not a sentence"),
    ):
        with pytest.raises(DataError, match=message):
            read_words(text)
    with pytest.raises(DataError, match="X has 2 different words, of which 1 occur 2 times or more"):
        read_sentences(["a a b"], 2)
