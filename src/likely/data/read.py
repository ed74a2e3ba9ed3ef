"""Tables from files: CSV, TSV and Parquet, each error with the line where it is known."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ..core.errors import DataError
from ..core.plural import counted
from .frame import check_names, some
from .marks import marks_of
from .reading import Reading
from .text_file import TextFile, decoded, first_line
from .unnamed import placeholders, without_unnamed
from .written import with_written

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
    written: `52.353,57`, `$1,200`, `(300)`, `12 %` (as 12). A `ReadingNote` says what was read in another form. A
    column without a name is left out if it is empty, or if it is the first one and holds names of the rows.

    Parameters
    ----------
    path : the file.
    separator : what parts fields. None finds out: a .csv file without a comma in its first line (but in quotes) may be
        separated by semicolons, tabs or bars; a first line `sep=;` says it.
    decimal : what parts decimals, "." or ",". None finds out: where a column can only have decimal commas, they are
        those of the file, so that `1,234` and `1.234` in others are 1.234 and 1234; a file that does not tell has
        points, or commas if semicolons part its fields.
    thousands : what parts thousands: ",", ".", "'" or " ". None takes any that is not the mark of decimals.
    encoding : such as "latin-1". None takes UTF-8 or UTF-16, or else Latin-1 of Windows.
    missing : a word or words that mean a missing value here, besides the usual ones.

    Returns
    -------
    A polars frame, (rows, columns), with missing values as null.

    See also
    --------
    likely.data.Table : encodes frames as numbers. likely.TableModel : a model of one column by the others.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("area,city\\n50,Oslo\\nNA,Bergen\\n")
    >>> read_table(path)["area"].to_list()
    [50, None]
    """
    return read_marked(path, Reading(separator, decimal, thousands, encoding, _listed(missing)))[0]


def read_marked(path: str | os.PathLike[str], reading: Reading) -> tuple[pl.DataFrame, Reading]:
    """The table, and the reading that finds the same numbers in others of its kind: with the decimals it found."""
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
    detected = reading
    if ending == ".parquet":
        frame = _read_parquet(source)
    else:
        frame, detected = _read_text(decoded(source, reading.encoding), SEPARATORS[ending[:4]], reading)
    if not frame.columns:
        raise DataError(f"{source} has no columns.")
    if frame.height == 0:
        raise DataError(f"{source} has columns ({some(frame.columns)}) but no rows.")
    return frame, detected


def _listed(words: str | Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _read_parquet(source: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(source, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read as Parquet: {first_line(error)}.") from error


def _read_text(file: TextFile, usual: str, reading: Reading) -> tuple[pl.DataFrame, Reading]:
    """The table, and the reading with the marks of decimals that were found in it."""
    marks, missing = marks_of(reading.decimal, reading.thousands), [*MISSING, *reading.missing]
    file, told = _told_separator(file)
    names, separator = _header(file, usual, reading.separator or told)
    check_names([name for name in names if name] or names, str(file.path))
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
            frame, decimals = with_written(frame, text.select(frame.columns), reading, separator)
            # the point is what is taken where nothing tells, unless fields are separated by semicolons
            kept = decimals.file if decimals.file == "," or separator == ";" else reading.decimal
            reading = replace(reading, decimal=kept, decimals=decimals.own)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        _check_lines(file, separator, len(names))
        raise DataError(f"{file.path} cannot be read: {first_line(error)}.") from error
    if len(names) > 1:
        if short:
            _check_lines(file, separator, len(names))
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
    return frame, reading


def _first_try(file: TextFile, separator: str, missing: list[str]) -> pl.DataFrame | None:
    """None for what polars cannot part: fields with quotes behind a blank, and lines that end as on old Macs."""
    with file.lines() as lines:
        if lines.readline().endswith("\r"):
            return None
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


def _without_padding(file: TextFile, separator: str) -> pl.DataFrame:
    """All fields as text, without the blanks around them, which may also stand beside quotes."""
    with file.lines() as lines:
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


def _has_padding(frame: pl.DataFrame) -> bool:
    """Whether fields have blanks around them, as in `1, 2`, which would make numbers into text."""
    text = frame.select(pl.col(pl.String))
    if text.width == 0:
        return False
    return bool(text.select(pl.any_horizontal((pl.all() != pl.all().str.strip_chars()).any())).item())


def _told_separator(file: TextFile) -> tuple[TextFile, str | None]:
    """The file without the line `sep=;` that Excel takes for a word on the separator, and that separator."""
    with file.lines() as lines:
        first = lines.readline(20)
        told = re.fullmatch(r'"?sep=(.)"?\s*', first, re.IGNORECASE)
        return (file, None) if told is None else (TextFile(file.path, lines.read().encode()), told[1])


def _header(file: TextFile, usual: str, separator: str | None) -> tuple[list[str], str]:
    """The column names in the first line that is not blank, and what separates them."""
    with file.lines() as lines:
        first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{file.path} is empty; a table has a line of column names and rows below it.")
    if separator is None:
        plain = re.sub('"[^"]*"', "", first)
        others = (";", "\t", "|") if usual == "," and "," not in plain else ()
        separator = next((s for s in others if s in plain), usual)
    if len(separator) != 1:
        raise DataError(f"separator={separator!r}: fields are separated by one character, such as ',' or ';'.")
    return [name.strip() for name in next(csv.reader([first], delimiter=separator, skipinitialspace=True))], separator


def _check_lines(file: TextFile, separator: str, width: int) -> None:
    """Name the first line with too many or too few fields. Only called when something is wrong or may be."""
    with file.lines() as lines:
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
