"""Tables from files: CSV, TSV and Parquet, each error with the line where it is known."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from ..core.errors import DataError
from ..core.plural import counted
from .frame import check_names, some
from .notes import note
from .reading import Reading
from .unnamed import placeholders, without_unnamed
from .written import Marks, marks_of, with_written

__all__ = ["MISSING", "read_marked", "read_table"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NULL", "null", "?")
"""The words that mean a missing value in a CSV or TSV file."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
) -> pl.DataFrame:
    """The table in a CSV, TSV (also with .gz) or Parquet file, chosen by the ending of its name.

    The first line of a CSV or TSV file names the columns. Types come from all rows; empty fields, the words in
    `MISSING` and those in `missing` are missing values. Dates are recognised in common forms, and numbers as they are
    written: `52.353,57`, `$1,200`, `(300)`, `12 %` (as 12). A `ReadingNote` says what was read in another form.

    What is not given is found out: a .csv file without a comma in its first line may be separated by semicolons, tabs
    or bars; text is UTF-8 or UTF-16, or else Latin-1 of Windows; in `1,234` the comma parts thousands, or decimals
    where fields are separated by semicolons; a first line `sep=;` says what separates fields. A column without a name
    is left out if it is empty, or if it is the first and has another value in each row: row names.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("area,city\\n50,Oslo\\nNA,Bergen\\n")
    >>> read_table(path)["area"].to_list()
    [50, None]
    """
    return read_marked(path, Reading(separator, decimal, thousands, encoding, _listed(missing)))[0]


def read_marked(path: str | os.PathLike[str], reading: Reading) -> tuple[pl.DataFrame, Reading]:
    """The table, and the reading that finds the same numbers in others of its kind: with the decimal comma it found."""
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
    seen: dict[str, Marks] = {}
    if ending == ".parquet":
        frame = _read_parquet(source)
    else:
        frame, seen = _read_text(_decoded(source, reading.encoding), SEPARATORS[ending[:4]], reading)
    if not frame.columns:
        raise DataError(f"{source} has no columns.")
    if frame.height == 0:
        raise DataError(f"{source} has columns ({some(frame.columns)}) but no rows.")
    comma = any(marks.decimal == "," for marks in seen.values())
    return frame, replace(reading, decimal=",") if comma else reading


def _listed(words: str | Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


class _Text(NamedTuple):
    """A file of text: where it is, and its content in UTF-8 if that is not what the file itself holds."""

    path: Path
    content: bytes | None = None

    @property
    def source(self) -> Path | bytes:
        return self.path if self.content is None else self.content


def _decoded(path: Path, encoding: str | None) -> _Text:
    """The file as it is where it is UTF-8, else its content in UTF-8; a note says which encoding was taken."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as stream:
            if encoding is None and _is_utf8(stream):  # type: ignore[arg-type]
                return _Text(path)
            stream.seek(0)
            raw = stream.read()
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)
        raise DataError(f"{path} cannot be read: {reason}.") from error
    chosen = encoding or ("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "cp1252")
    try:
        text = raw.decode(chosen)
    except LookupError:
        raise DataError(f"encoding={encoding!r} is not known; utf-8, utf-16, latin-1 and cp1252 are.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in {chosen} (byte {error.start}); give its encoding.") from error
    if encoding is None:
        note(f"{path} is not UTF-8; read as {chosen}.")
    return _Text(path, text.removeprefix("\ufeff").encode())


def _is_utf8(stream: IO[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while block := stream.read(1 << 20):
            if b"\0" in block:
                return False
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _read_parquet(source: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(source, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read as Parquet: {_first_line(error)}.") from error


def _read_text(file: _Text, usual: str, reading: Reading) -> tuple[pl.DataFrame, dict[str, Marks]]:
    """The table, and the marks of numbers that were written with some."""
    marks, missing = marks_of(reading.decimal, reading.thousands), [*MISSING, *reading.missing]
    file, told = _told_separator(file)
    names, separator = _header(file, usual, reading.separator or told)
    check_names([name for name in names if name] or names, str(file.path))
    seen: dict[str, Marks] = {}
    try:
        frame, text = _first_try(file, separator, missing), None
        if frame is None or any(name != name.strip() for name in frame.columns) or _has_padding(frame):
            text = _without_padding(file, separator)
            frame = _parse(_as_csv(text), ",", missing)
        if "" in names:
            frame.columns = placeholders(names)
        short = bool(frame[:, -1].null_count())  # polars fills a line that is too short with missing values
        frame = without_unnamed(frame, str(file.path))
        comma = all(choice.decimal == "," for choice in marks)
        if any(dtype == pl.String or dtype.is_temporal() or (comma and dtype.is_float()) for dtype in frame.dtypes):
            text = _as_text(file.source, separator, missing) if text is None else _as_text(_as_csv(text), ",", missing)
            if "" in names:
                text.columns = placeholders(names)
            frame, seen = with_written(
                frame, text.select(frame.columns), marks if separator != ";" else _decimal_comma_first(marks)
            )
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        _check_lines(file, separator, len(names))
        raise DataError(f"{file.path} cannot be read: {_first_line(error)}.") from error
    if len(names) > 1:
        if short:
            _check_lines(file, separator, len(names))
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
    return frame, seen


def _first_try(file: _Text, separator: str, missing: list[str]) -> pl.DataFrame | None:
    """None for fields that polars cannot part: quotes may stand behind a blank."""
    try:
        return _parse(file.source, separator, missing)
    except pl.exceptions.ComputeError:
        return None


def _parse(source: Path | bytes, separator: str, missing: list[str]) -> pl.DataFrame:
    return pl.read_csv(
        source,
        separator=separator,
        null_values=missing,
        infer_schema_length=None,
        try_parse_dates=True,
        glob=False,
    )


def _as_text(source: Path | bytes, separator: str, missing: list[str]) -> pl.DataFrame:
    return pl.read_csv(source, separator=separator, null_values=missing, infer_schema=False, glob=False)


def _as_csv(text: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    text.write_csv(buffer)
    return buffer.getvalue()


def _without_padding(file: _Text, separator: str) -> pl.DataFrame:
    """All fields as text, without the blanks around them, which may also stand beside quotes."""
    with _lines(file) as lines:
        rows = [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    names, *rows = [[field.strip() for field in row] for row in rows]
    _check_widths(rows, len(names))
    names = placeholders(names)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    return pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))


def _check_widths(rows: list[list[str]], width: int) -> None:
    """A line of another width is left to `_check_lines`, which names it."""
    if any(len(row) != width for row in rows):
        raise pl.exceptions.ComputeError("lines of different width")


def _decimal_comma_first(marks: tuple[Marks, ...]) -> tuple[Marks, ...]:
    return tuple(sorted(marks, key=lambda choice: choice.decimal != ","))


def _has_padding(frame: pl.DataFrame) -> bool:
    """Whether fields have blanks around them, as in `1, 2`, which would make numbers into text."""
    text = frame.select(pl.col(pl.String))
    if text.width == 0:
        return False
    return bool(text.select(pl.any_horizontal((pl.all() != pl.all().str.strip_chars()).any())).item())


def _told_separator(file: _Text) -> tuple[_Text, str | None]:
    """The file without the line `sep=;` that Excel takes for a word on the separator, and that separator."""
    with _lines(file) as lines:
        first = lines.readline(20)
        told = re.fullmatch(r'"?sep=(.)"?\s*', first, re.IGNORECASE)
        return (file, None) if told is None else (_Text(file.path, lines.read().encode()), told[1])


def _header(file: _Text, usual: str, separator: str | None) -> tuple[list[str], str]:
    """The column names in the first line that is not blank, and what separates them."""
    with _lines(file) as lines:
        first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{file.path} is empty; a table has a line of column names and rows below it.")
    if separator is None:
        others = (";", "\t", "|") if usual == "," and "," not in first else ()
        separator = next((s for s in others if s in first), usual)
    if len(separator) != 1:
        raise DataError(f"separator={separator!r}: fields are separated by one character, such as ',' or ';'.")
    return [name.strip() for name in next(csv.reader([first], delimiter=separator, skipinitialspace=True))], separator


@contextmanager
def _lines(file: _Text) -> Iterator[IO[str]]:
    source = file.path
    if file.content is not None:
        yield io.StringIO(file.content.decode(), newline="")
        return
    opened = gzip.open if source.name.lower().endswith(".gz") else open
    try:
        with opened(source, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)
        raise DataError(f"{source} cannot be read: {reason}.") from error


def _check_lines(file: _Text, separator: str, width: int) -> None:
    """Name the first line with too many or too few fields. Only called when something is wrong or may be."""
    with _lines(file) as lines:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        try:
            for fields in reader:
                if fields and len(fields) != width:
                    raise DataError(
                        f"{file.path}, line {reader.line_num}: {counted(len(fields), 'field')} where the first line "
                        f"names {counted(width, 'column')}; make them agree (quote fields that contain {separator!r})."
                    )
        except csv.Error as error:
            raise DataError(f"{file.path}, line {reader.line_num}: {error}.") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
