from __future__ import annotations

import pytest

from likely.core.errors import DataError, ModelFileError
from likely.data.text import Forms, FormVocabulary


def test_words_that_look_alike_share_forms():
    vocabulary = Forms(min_count=1).fit([["Running", "walking"], ["ran"]])
    rows = vocabulary.rows([["Talking"], ["walking"], []])
    assert rows.lengths.tolist() == [1, 1, 1]
    unknown, known, nothing = rows.values.tolist()
    assert unknown[0] == vocabulary.size != known[0]  # the word itself is not known
    assert unknown[-4:] == known[-4:]  # and ends as one that is
    assert set(nothing) == {vocabulary.size}


def test_texts_are_cut_at_spaces():
    vocabulary = Forms(min_count=1).fit(["don't go"])
    assert vocabulary.rows(["don't go"]).values.tolist() == vocabulary.rows([["don't", "go"]]).values.tolist()


def test_rare_forms_and_files():
    vocabulary = Forms().fit(["aa ab", "ac"])
    assert vocabulary.forms == ("ba", "saa")
    assert FormVocabulary.from_json(vocabulary.to_json()) == vocabulary
    with pytest.raises(DataError, match="No form of a word is there 5 times; use a smaller min_count"):
        Forms(5).fit(["a"])
    for forms in (None, [], ["b", "a"], [1]):
        with pytest.raises(ModelFileError, match="whose forms are not different ones in order"):
            FormVocabulary.from_json({"kind": "forms", "forms": forms})
