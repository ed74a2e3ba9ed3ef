from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError, ModelFileError, SpecError
from likely.data.text import Words, vocabulary_from_json


def test_frequent_words_come_first_and_rare_ones_share_the_last_token():
    vocabulary = Words(min_count=2).fit(["b a, a", "b a; c"])
    assert vocabulary.words == ("a", "b")
    np.testing.assert_array_equal(vocabulary.encode("c a b!"), [2, 0, 1, 2])
    assert vocabulary.size == 3


@pytest.mark.parametrize("text", ["Well (said he), go!", "It is 1 o", "ÄÖ übrig, naïve", "a\u4e2d b"])
def test_plain_sentences_come_back(text):
    vocabulary = Words().fit(text)
    assert vocabulary.decode(vocabulary.encode(text)) == text


def test_white_space_is_not_kept():
    vocabulary = Words().fit("a b")
    assert vocabulary.decode(vocabulary.encode(" a\n\n b ")) == "a b"
    assert len(vocabulary.encode(" \n")) == 0


def test_counts_that_leave_no_word_are_refused():
    with pytest.raises(DataError, match="texts has no word that is there 3 times; use a smaller min_count"):
        Words(min_count=3).fit("a b a")
    with pytest.raises(SpecError, match=r"Words\(min_count=0\): min_count must be a positive integer"):
        Words(min_count=0)


@pytest.mark.parametrize("words", [["a", "a"], [], [""], [1], None])
def test_a_file_with_other_words_is_refused(words):
    with pytest.raises(ModelFileError, match="The file has a vocabulary whose words are not different words"):
        vocabulary_from_json({"kind": "words", "words": words})
