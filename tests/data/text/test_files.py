from __future__ import annotations

import pytest

from likely import LanguageModel
from likely.core.errors import DataError
from likely.data.text import read_folder, read_text, read_texts
from likely.models.language.ngram import NGram


def test_a_file_is_one_text_and_a_folder_several(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.txt").write_text("to be", encoding="utf-8")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfor\r\nnot")
    (tmp_path / "c.csv").write_text("x")
    assert read_texts(tmp_path / "a.txt") == "or\nnot"
    assert read_texts(tmp_path) == ["or\nnot", "to be"]
    assert read_folder(tmp_path).labels == ["", "b"]


def test_language_is_learned_from_paths(tmp_path):
    (tmp_path / "a.txt").write_text("abcabcabc")
    (tmp_path / "b.txt").write_text("abcab")
    alone, several = LanguageModel(NGram(3)).fit(tmp_path / "a.txt"), LanguageModel(NGram(3)).fit(tmp_path)
    assert not alone.ends_
    assert several.ends_
    assert alone.perplexity(tmp_path / "a.txt") == LanguageModel(NGram(3)).fit("abcabcabc").perplexity("abcabcabc")


def test_what_is_no_text_is_named(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"na\xefve")
    (tmp_path / "empty.txt").write_text("")
    for name, message in {
        "nope.txt": "No text at .*nope.txt; check the path",
        "latin.txt": "latin.txt is not text in UTF-8: byte 2 is none of it; convert it first",
        "empty.txt": "empty.txt is empty: it has no characters",
    }.items():
        with pytest.raises(DataError, match=message):
            read_text(tmp_path / name)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"has no \.txt file; a folder of texts has one for each text"):
        read_texts(tmp_path / "none")
