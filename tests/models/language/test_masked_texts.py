"""Texts with masks as tokens, documents as sentences, and the token of unknown words."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.data.text import BPE, Characters, Words
from likely.models.language.masked_texts import MASK, as_documents, in_order, unknown_token, with_blanks

TEXTS = ["to be or not to be", "that is the question", "not to question it"]


@pytest.mark.parametrize(
    ("tokens", "hidden"),
    [(Words(), [("to [mask] or not to [mask]", "be", "be"), ("[mask] is the question", "that")]),
     (Characters(), [("to [mask]e or n[mask]t", "b", "o"), ("th[mask]t", "a")]),
     (BPE(256), [("to [mask] or", "b"), ("[mask]hat", "t")])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_masks_stand_where_their_tokens_would(tokens, hidden):
    """Of a text and the tokens that were hidden: put in place of the masks, they are the tokens of the whole text."""
    vocabulary = tokens.fit(TEXTS)
    spaced = isinstance(tokens, BPE)
    blanks = with_blanks(vocabulary, [text for text, *_ in hidden])
    filled, answers = blanks.values.copy(), [word for _, *words in hidden for word in words]
    at = np.flatnonzero(filled == vocabulary.size)
    assert len(at) == len(answers)
    np.testing.assert_array_equal(blanks.offsets[blanks.owner] + blanks.place, at)
    for number, (text, *words) in enumerate(hidden):
        own = blanks.values[blanks.offsets[number] : blanks.offsets[number + 1]]
        whole = text
        for word in words:
            whole = whole.replace(MASK, word, 1)
        if not spaced:
            filled[at[blanks.owner == number]] = [vocabulary.encode(word)[0] for word in words]
            now = filled[blanks.offsets[number] : blanks.offsets[number + 1]]
            np.testing.assert_array_equal(now, vocabulary.encode(whole))
            assert MASK.join(blanks.around[number]) == text
        else:  # the space before a mask is part of what fills it
            before, after = text.split(MASK)
            expected = [*vocabulary.encode(before[:-1]), vocabulary.size] if before else [vocabulary.size]
            np.testing.assert_array_equal(own, [*expected, *vocabulary.encode(after)])


def test_a_text_without_a_mask_is_named():
    vocabulary = Words().fit(TEXTS)
    with pytest.raises(DataError, match=r"line has no \[mask\]: write \[mask\] in place of a token"):
        with_blanks(vocabulary, ["to be"], "line")
    with pytest.raises(DataError, match=r"text\[1\] has no \[mask\]"):
        with_blanks(vocabulary, ["[mask]", "to be"])


def test_texts_in_order_can_be_parted_again():
    pieces = [np.array([3, 1]), np.array([], int), np.array([2])]
    values, offsets = in_order(pieces)
    for own, piece in zip(np.split(values, offsets[1:-1]), pieces, strict=True):
        np.testing.assert_array_equal(own, piece)


def test_documents_are_lists_of_sentences():
    sentences, document = as_documents([["a b", "c"], ["d"], ["e", "f", "g"]])
    assert sentences == ["a b", "c", "d", "e", "f", "g"]
    assert document.tolist() == [0, 0, 1, 2, 2, 2]
    for texts in (TEXTS, "to be", [], [["to be"], "or not"]):
        with pytest.raises(DataError, match="texts must be a list of documents, each a list of sentences"):
            as_documents(texts)
    with pytest.raises(DataError, match=r"texts\[0\]\[1\] is 3, an int"):
        as_documents([["to be", 3]])


def test_the_token_of_what_is_unknown_is_that_of_new_words():
    vocabulary = Words().fit(TEXTS)
    assert unknown_token(vocabulary) == vocabulary.encode("perchance")[0]
    assert unknown_token(Characters().fit(TEXTS)) is None
    assert unknown_token(BPE(256).fit(TEXTS)) is None
