"""Texts on the command line: files and folders of them, columns of tables, and models of language."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import DataError, SpecError
from .output import lines, number, print_json
from .reading import read

if TYPE_CHECKING:
    import polars as pl

    from ..data.reading import Reading
    from ..models import LanguageModel

__all__ = ["CLASS", "TEXT", "fit_language", "is_texts", "language_measures", "read_rows", "text_column", "texts_in"]

TEXT, CLASS = "text", "class"
"""The columns of a folder of texts as a table."""


def is_texts(path: Path) -> bool:
    """Whether this is a folder, or a file of text and not a table."""
    return path.is_dir() or path.name.lower().endswith(".txt")


def read_rows(path: Path, model: Any = None, reading: Reading | None = None) -> pl.DataFrame:
    """A table, or a folder of texts (or one text) as a table: the file, the text, and the folder as its class.

    Texts and classes are in columns of the names that the model knows.
    """
    import polars as pl

    from ..data.text import read_folder, read_text

    if not is_texts(path):
        return read(path, reading, model)
    text, target = getattr(getattr(model, "table_", None), "text", TEXT), getattr(model, "target", CLASS)
    if not path.is_dir():
        return pl.DataFrame({"file": [str(path)], text: [read_text(path)]})
    names, texts, labels = read_folder(path)
    classes = {target: [label or None for label in labels]} if any(labels) else {}
    return pl.DataFrame({"file": names, text: texts, **classes})


def text_column(rows: pl.DataFrame, text: str | None, target: str, ignore: Sequence[str]) -> tuple[str | None, str]:
    """The column that the model reads as text, if there is one, and a word on why."""
    from ..data.frame import as_frame, column_of
    from ..data.text_column import text_columns

    others = [name for name in rows.columns if name not in (target, *ignore)]
    if text is not None:
        column_of(as_frame(rows, "The table"), text, "The table")
        unused = [name for name in others if name != text]
        return text, f"; not looked at: {', '.join(unused)}" if unused else ""
    prose = [name for name in text_columns(rows) if name in others]
    if not prose:
        return None, ""
    if len(others) == 1:
        return prose[0], ", since its strings have several words; --text names another"
    raise DataError(
        f"Column {prose[0]!r} looks like text, and there are others beside it: give --text {prose[0]} to learn from it "
        f"alone, or --ignore {prose[0]} to learn from the others."
    )


def texts_in(path: Path, text: str | None, reading: Reading | None = None) -> Sequence[str]:
    """The texts for a model of language: of a file, of a folder, or of a column of a table."""
    from ..data.text import read_texts
    from ..data.text_column import TextColumn, text_columns

    if is_texts(path):
        return read_texts(path)
    rows = read(path, reading)
    prose = [text] if text is not None else text_columns(rows)
    if len(prose) != 1:
        raise SpecError(f"{path} has {len(prose)} columns that look like text; say which it is: --text COLUMN.")
    return [own for own in TextColumn(prose[0]).fit_transform(rows) if own]


def fit_language(
    path: Path, model: LanguageModel, out: Path, *, text: str | None, json: bool, reading: Reading | None = None
) -> None:
    """Fit a model of language to texts, save it, and say what it found."""
    texts = texts_in(path, text, reading)
    start = time.perf_counter()
    model.fit(texts)
    seconds = time.perf_counter() - start
    model.save(out)
    characters, size = sum(map(len, texts)), model.vocabulary_.size
    result = {"model": str(out), "texts": len(texts), "characters": characters, "tokens": size}
    if json:
        print_json(result | {"seconds": seconds})
        return
    count = "one text" if len(texts) == 1 else f"{len(texts)} texts"
    begin = texts[0].split("\n")[0][:20].strip()
    lines(
        {
            "text": f"{path}: {count} of {characters} characters",
            "model": repr(model),
            "fit": f"{seconds:.2g} s; {size} different tokens",
            "saved": str(out),
            "next": f'likely sample {out} --prompt "{begin}", or likely evaluate {out} OTHER_TEXT',
        }
    )


def language_measures(model: LanguageModel, path: Path, reading: Reading | None = None) -> dict[str, tuple[Any, str]]:
    """How well a model of language predicts texts."""
    texts = texts_in(path, None, reading)
    result: dict[str, tuple[Any, str]] = {
        "texts": (len(texts), "of the file or folder"),
        "characters": (sum(map(len, texts)), "in all"),
        "perplexity": (model.perplexity(texts), "per token: as unsure as among so many equally probable ones"),
    }
    try:
        bits = model.bits_per_character(texts)
    except DataError:  # tokens that do not keep all of a text have no probability of its characters
        return result
    nats = number(bits * math.log(2))
    return result | {"bits_per_character": (bits, f"−log₂ p of a character, {nats} nats; lower is better")}
