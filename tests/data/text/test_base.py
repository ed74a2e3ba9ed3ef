from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from likely.core.errors import DataError, ModelFileError
from likely.core.spec import Spec, registered
from likely.data.text import BPE, Characters, Tokens, Words, as_texts, vocabulary_from_json

TEXTS = ["To be, or not to be", "that is the question:\n\twhether 'tis nobler"]
SPECS = [BPE(300), Characters(), Characters(unknown=True), Words(), Words(min_count=2)]


def test_every_kind_of_tokens_is_tried_here():
    assert {type(spec).__name__ for spec in SPECS} == set(registered(Tokens))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_vocabulary_goes_to_json_and_back(spec):
    vocabulary = spec.fit(TEXTS)
    again = vocabulary_from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary
    for text in TEXTS:
        tokens = vocabulary.encode(text)
        np.testing.assert_array_equal(again.encode(text), tokens)
        assert again.decode(tokens) == vocabulary.decode(tokens)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_tokens_are_the_numbers_below_size_and_decoding_is_encoding_undone(spec):
    vocabulary = spec.fit(TEXTS)
    for text in TEXTS:
        tokens = vocabulary.encode(text)
        assert tokens.dtype == np.int64
        assert tokens.min() >= 0
        assert tokens.max() < vocabulary.size
        if not isinstance(spec, Words):
            assert vocabulary.decode(tokens) == text
    assert vocabulary.decode([]) == ""


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_specs_are_values(spec):
    assert Spec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert spec.fit("one text, one") == spec.fit(["one text, one"])


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("bad", [[-1], [10**6], [0.5], [[0]]])
def test_what_is_no_token_is_refused(spec, bad):
    with pytest.raises(DataError, match="tokens"):
        spec.fit(TEXTS).decode(bad)


def test_lists_of_strings_come_in_many_forms():
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS), (text for text in TEXTS)):
        assert as_texts(texts) == TEXTS
    assert as_texts(["", "a"], empty=True) == ["", "a"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "texts is an empty list: there is no text in it."),
        ("", "texts[0] is empty: it has no characters; leave it out."),
        (["a", ""], "texts[1] is empty: it has no characters; leave it out."),
        (["a", None], "texts[1] is None, a NoneType; it must be a string."),
        (3, "texts must be a string or a list of strings; found 3."),
        (b"bytes", "texts must be a string or a list of strings; found b'bytes'."),
        ({"a": "b"}, "texts must be a string or a list of strings; found {'a': 'b'}."),
        (np.array([["a"]]), "texts must be a string or a list of strings; found array([['a']], dtype='<U1')."),
    ],
)
def test_what_is_no_text_is_refused_by_name(texts, message):
    with pytest.raises(DataError, match=re.escape(message)):
        as_texts(texts)


@pytest.mark.parametrize(
    "data", [None, {}, {"kind": "runes"}, {"kind": ["words"]}, {"kind": "words", "words": ["a"], "b": 1}]
)
def test_a_vocabulary_of_another_kind_is_refused(data):
    with pytest.raises(ModelFileError, match="The file has a vocabulary"):
        vocabulary_from_json(data)
