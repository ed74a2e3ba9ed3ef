from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from likely import LanguageModel
from likely.core.errors import DataError
from likely.data.text import BPE, Characters, Words, read_folder, read_text, read_texts
from likely.models.language.ngram import NGram


def test_a_file_is_one_text_and_a_folder_several(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.txt").write_text("to be", encoding="utf-8")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfor\r\nnot")
    (tmp_path / "c.csv").write_text("x")
    assert list(read_texts(tmp_path / "a.txt")) == ["or\nnot"]
    assert list(read_texts(tmp_path)) == ["or\nnot", "to be"]
    assert read_folder(tmp_path).labels == ["", "b"]


def test_language_is_learned_from_paths(tmp_path):
    (tmp_path / "a.txt").write_text("abcabcabc")
    (tmp_path / "b.txt").write_text("abcab")
    alone, several = LanguageModel(NGram(3)).fit(tmp_path / "a.txt"), LanguageModel(NGram(3)).fit(tmp_path)
    assert not alone.ends_
    assert several.ends_
    assert alone.perplexity(tmp_path / "a.txt") == LanguageModel(NGram(3)).fit("abcabcabc").perplexity("abcabcabc")


@pytest.mark.parametrize("tokens", [Characters(), Words(), Words(lower=True, cut="spaces"), BPE(300)])
def test_no_token_goes_across_the_parts_of_a_file(tmp_path, tokens):
    text = "  Don't  panic:\t42 \n\n towels,\u00a0na\u00efve \U0001f3b2\u3000 \u039f\u03a3 it's\x00 a b\r\n  " * 5
    (tmp_path / "a.txt").write_text(text, encoding="utf-8", newline="")
    stored, whole = read_texts(tmp_path / "a.txt"), text.replace("\r\n", "\n")
    vocabulary = tokens.fit(whole)
    assert tokens.fit(stored) == vocabulary
    for size in (1, 2, 3, 7, 40):
        parts = list(stored.parts(0, size))
        assert len(parts) > 5
        assert "".join(parts) == whole
        coded = np.concatenate([vocabulary.encode(part) for part in parts])
        np.testing.assert_array_equal(coded, vocabulary.encode(whole))


def test_a_folder_larger_than_the_memory_is_read_file_by_file(tmp_path):
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text("to be or not to be " * 5_000)
    tracemalloc.start()
    try:
        Words().fit(tmp_path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2_000_000  # of 3.8 million characters


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
