from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.core.errors import ModelFileError, SpecError
from likely.data.text import BPE, vocabulary_from_json

TEXT = "the cat sat on the mat, and that was that; the dog sat on the log. " * 3
ANY = st.text(st.characters(exclude_categories=()))
"""Any string of Python's, lone surrogates included."""
LEARNED = BPE(300).fit(TEXT)


def test_the_textbook_example():
    vocabulary = BPE(259).fit("aaabdaaabac")
    np.testing.assert_array_equal(vocabulary.encode("aaabdaaabac"), [258, 100, 258, 97, 99])


@given(ANY)
def test_any_text_comes_back(text):
    assert LEARNED.decode(LEARNED.encode(text)) == text


@pytest.mark.parametrize(
    "text", ["\x00", "🎲👩‍👩‍👧", "\ud83d\ude00", "\ud800", "\udfff a", "\r\n\t \x85\xa0", "a" * 5000]
)
def test_awkward_texts_come_back(text):
    for vocabulary in (LEARNED, BPE(300).fit(text * 2)):
        assert vocabulary.decode(vocabulary.encode(text)) == text


def test_without_merges_tokens_are_the_bytes():
    text = "naïve 🎲"
    np.testing.assert_array_equal(BPE(256).fit(TEXT).encode(text), list(text.encode()))


def test_every_merge_is_of_the_most_frequent_pair():
    """Where one word is all there is, by counting pairs again after each merge."""
    word = "abracadabrabracadabra"
    tokens = list(word.encode())
    for number, pair in enumerate(BPE(262).fit(word).merges):
        counts = Counter(pairwise(tokens))
        assert counts[pair] == max(counts.values())
        tokens = merged(tokens, pair, 256 + number)
    np.testing.assert_array_equal(BPE(262).fit(word).encode(word), tokens)


def merged(tokens, pair, new):
    out, place = [], 0
    while place < len(tokens):
        if tuple(tokens[place : place + 2]) == pair:
            out.append(new)
            place += 2
        else:
            out.append(tokens[place])
            place += 1
    return out


def test_merges_stay_within_words_and_need_two_occurrences():
    vocabulary = BPE(1000).fit(TEXT)
    assert vocabulary.size < 1000
    assert not any(b" " in piece[1:] for piece in vocabulary._pieces)
    assert BPE(300).fit("abcdefg").size == 256


def test_tokens_that_are_no_text_are_decoded_as_far_as_they_are():
    assert BPE(256).fit(TEXT).decode([97, 0xF0, 0x9F]) == "a\ufffd"


def test_the_library_of_tokens_is_loaded_where_it_is_used():
    check = "import sys, likely.data.text as t; t.BPE(), t.Characters().fit('a'); print('tokenizers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("size", [255, 0, 2.5, 10**7])
def test_a_size_that_will_not_do_is_named(size):
    with pytest.raises(SpecError, match="size must be an integer from 256"):
        BPE(size)


@pytest.mark.parametrize(
    "merges",
    [
        None,
        [[97, 256]],
        [[97, -1]],
        [[97]],
        [[97, True]],
        [[97, 98], [97, 98]],
        [[97, 97]] + [[255 + i, 255 + i] for i in range(1, 60)],
    ],
    ids=["none", "later", "negative", "single", "flag", "twice", "doubling"],
)
def test_a_file_with_other_merges_is_refused(merges):
    with pytest.raises(ModelFileError, match="The file has"):
        vocabulary_from_json({"kind": "byte_pairs", "merges": merges})
