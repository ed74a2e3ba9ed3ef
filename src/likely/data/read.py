"""Tables from files: CSV, TSV and Parquet, each error with the line where it is known."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl

from ..core.errors import DataError
from .frame import check_names, some

__all__ = ["MISSING", "read_table"]

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "?")
"""The words that mean a missing value in a CSV or TSV file."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def read_table(path: str | os.PathLike[str]) -> pl.DataFrame:
    """The table in a CSV, TSV (also with .gz) or Parquet file, chosen by the ending of its name.

    The first line of a CSV or TSV file names the columns. Types come from all rows; dates are recognised; empty fields
    and the words in `MISSING` are missing values. A .csv file without a comma in its first line may be separated by
    semicolons or tabs.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("area,city\\n50,Oslo\\nNA,Bergen\\n")
    >>> read_table(path)["area"].to_list()
    [50, None]
    """
    source = Path(path)
    ending = next((e for e in ENDINGS if source.name.lower().endswith(e)), None)
    if source.is_dir():
        raise DataError(f"{source} is a folder; give a file in it.")
    if not source.exists():
        raise DataError(f"No table at {source}; check the path.")
    if ending is None:
        raise DataError(f"{source}: the ending {source.suffix!r} is not known; tables end in {', '.join(ENDINGS)}.")
    if source.stat().st_size == 0:
        raise DataError(f"{source} is empty; a table has a line of column names and rows below it.")
    frame = _read_parquet(source) if ending == ".parquet" else _read_text(source, SEPARATORS[ending[:4]])
    if not frame.columns:
        raise DataError(f"{source} has no columns.")
    if frame.height == 0:
        raise DataError(f"{source} has columns ({some(frame.columns)}) but no rows.")
    return frame


def _read_parquet(source: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(source, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read as Parquet: {_first_line(error)}.") from error


def _read_text(source: Path, separator: str) -> pl.DataFrame:
    names, separator = _header(source, separator)
    check_names(names, str(source))
    try:
        frame = _parse(source, separator)
        if any(name != name.strip() for name in frame.columns) or _has_padding(frame):
            text = pl.read_csv(source, separator=separator, infer_schema=False, glob=False)
            buffer = io.BytesIO()
            text.select(pl.all().str.strip_chars().name.map(str.strip)).write_csv(buffer)
            frame = _parse(buffer.getvalue(), ",")
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        _check_lines(source, separator, len(names))
        raise DataError(f"{source} cannot be read: {_first_line(error)}.") from error
    if frame.width > 1:
        if frame[:, -1].null_count():  # polars fills a line that is too short with missing values
            _check_lines(source, separator, len(names))
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
    return frame


def _parse(source: Path | bytes, separator: str) -> pl.DataFrame:
    return pl.read_csv(
        source,
        separator=separator,
        null_values=list(MISSING),
        infer_schema_length=None,
        try_parse_dates=True,
        glob=False,
    )


def _has_padding(frame: pl.DataFrame) -> bool:
    """Whether fields have blanks around them, as in `1, 2`, which would make numbers into text."""
    text = frame.select(pl.col(pl.String))
    if text.width == 0:
        return False
    return bool(text.select(pl.any_horizontal((pl.all() != pl.all().str.strip_chars()).any())).item())


def _header(source: Path, separator: str) -> tuple[list[str], str]:
    """The column names in the first line that is not blank, and what separates them."""
    with _lines(source) as lines:
        first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{source} is empty; a table has a line of column names and rows below it.")
    if separator == "," and "," not in first:
        separator = next((s for s in (";", "\t") if s in first), ",")
    return [name.strip() for name in next(csv.reader([first], delimiter=separator))], separator


@contextmanager
def _lines(source: Path) -> Iterator[IO[str]]:
    opened = gzip.open if source.name.lower().endswith(".gz") else open
    try:
        with opened(source, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise DataError(f"{source} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)
        raise DataError(f"{source} cannot be read: {reason}.") from error


def _check_lines(source: Path, separator: str, width: int) -> None:
    """Name the first line with too many or too few fields. Only called when something is wrong or may be."""
    with _lines(source) as lines:
        reader = csv.reader(lines, delimiter=separator)
        try:
            for fields in reader:
                if fields and len(fields) != width:
                    raise DataError(
                        f"{source}, line {reader.line_num}: {len(fields)} fields where the first line names {width} "
                        f"columns; make them agree (quote fields that contain {separator!r})."
                    )
        except csv.Error as error:
            raise DataError(f"{source}, line {reader.line_num}: {error}.") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
