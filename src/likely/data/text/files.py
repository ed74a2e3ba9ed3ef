"""Texts from files: one file is one text, a folder has a text in each of its .txt files, folders in it are classes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DataError

__all__ = ["ENDING", "TextFiles", "read_folder", "read_text", "read_texts"]

ENDING = ".txt"
PathLike = str | os.PathLike[str]


class TextFiles(NamedTuple):
    """The texts of a folder, the names of their files in it, and the folders that those are in ("" for none)."""

    names: list[str]
    texts: list[str]
    labels: list[str]


def read_text(path: PathLike) -> str:
    """The text of a file in UTF-8.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "hamlet.txt"
    >>> _ = path.write_text("To be, or not to be")
    >>> read_text(path)
    'To be, or not to be'
    """
    source = Path(path)
    if not source.exists():
        raise DataError(f"No text at {source}; check the path.")
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{source} is not text in UTF-8: byte {error.start} is none of it; convert it first."
        ) from error
    except OSError as error:
        raise DataError(f"{source} cannot be read: {error.strerror or error}.") from error
    if not text:
        raise DataError(f"{source} is empty: it has no characters.")
    return text.replace("\r\n", "\n")


def read_texts(path: PathLike) -> str | list[str]:
    """The text of a file, or a list with the texts of all .txt files in a folder and its folders, by their names.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "1.txt").write_text("to be"), (folder / "2.txt").write_text("or not")
    >>> read_texts(folder / "1.txt"), read_texts(folder)
    ('to be', ['to be', 'or not'])
    """
    return read_folder(path).texts if Path(path).is_dir() else read_text(path)


def read_folder(path: PathLike) -> TextFiles:
    """The .txt files of a folder and of its folders, in order of their names, one read after the other.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, text in {"good/1.txt": "so warm", "bad/1.txt": "so dull"}.items():
    ...     (folder / name).parent.mkdir()
    ...     _ = (folder / name).write_text(text)
    >>> read_folder(folder).texts, read_folder(folder).labels
    (['so dull', 'so warm'], ['bad', 'good'])
    """
    folder = Path(path)
    files = sorted(file for file in folder.rglob(f"*{ENDING}") if file.is_file())
    if not files:
        raise DataError(f"{folder} has no {ENDING} file; a folder of texts has one for each text.")
    places = [file.relative_to(folder) for file in files]
    labels = [place.parts[0] if len(place.parts) > 1 else "" for place in places]
    return TextFiles([str(place) for place in places], [read_text(file) for file in files], labels)
