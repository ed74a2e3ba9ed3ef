"""Files of text as they are: encodings and line ends."""

from __future__ import annotations

import gzip

import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data.read import read_table

CITIES = {"città": ["Forlì", "Åre"], "n": [1, 2]}
TEXT = "città,n\nForlì,1\nÅre,2\n"


@pytest.mark.parametrize(
    ("encoding", "noted"),
    [
        *(("utf-8", None), ("utf-8-sig", None), ("cp1252", "cp1252")),
        *(("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"), ("utf-16-be", "utf-16-be")),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_encodings_are_recognised(tmp_path, encoding, noted, ending, recwarn):
    path = tmp_path / f"t{ending}"
    content = TEXT.encode(encoding)
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read_table(path).to_dict(as_series=False) == CITIES
    notes = [str(w.message) for w in recwarn if issubclass(w.category, ReadingNote)]
    assert notes == ([] if noted is None else [f"{path} is not UTF-8; read as {noted}."])


def test_an_encoding_can_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nř,1\nš,2\n".encode("iso8859-2"))
    assert read_table(path, encoding="iso8859-2")["a"].to_list() == ["ř", "š"]
    with pytest.raises(DataError, match="'klingon' is not known"):
        read_table(path, encoding="klingon")
    with pytest.raises(DataError, match="is not text in utf-8"):
        read_table(path, encoding="utf-8")


@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_bytes_that_are_0_are_not_text(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\x00\x002\n")
    with pytest.raises(DataError, match=r"is not text in .*: it holds bytes that are 0; give its encoding"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.replace("\n", end).encode())
    assert read_table(path).to_dict(as_series=False) == CITIES
