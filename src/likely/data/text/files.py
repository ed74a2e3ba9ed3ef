"""Texts from files: one file is one text, a folder has a text in each of its .txt files, folders in it are classes.

What is learned from may be larger than the memory: files are read when they are asked for and not kept, and in parts
that begin with a white space after a word, where no token of words, characters or byte pairs goes across.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, overload

from ...core.errors import DataError

__all__ = ["ENDING", "StoredTexts", "TextFiles", "parts_of", "read_folder", "read_text", "read_texts"]

ENDING = ".txt"
PART = 1 << 16
"""Bytes that are read at a time."""
SPACES = frozenset(" \t\n\r\x0b\x0c")
PathLike = str | os.PathLike[str]


class StoredTexts(Sequence[str]):
    """Texts in files: each is read when it is asked for, whole by its number or in `parts`, and not kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "hamlet.txt"
    >>> _ = path.write_text("To be, or not to be")
    >>> stored = StoredTexts([path])
    >>> stored[0], list(stored.parts(0, 8))
    ('To be, or not to be', ['To be,', ' or not', ' to', ' be'])
    """

    def __init__(self, files: Sequence[Path], *, single: bool = False) -> None:
        self.files = list(files)
        self.single = single
        """Whether this is one text, and not a list with one."""

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> StoredTexts: ...
    def __getitem__(self, place: int | slice) -> str | StoredTexts:
        return StoredTexts(self.files[place]) if isinstance(place, slice) else "".join(self.parts(place))

    def __repr__(self) -> str:
        return f"<{len(self)} text{'s' * (len(self) != 1)} in files>"

    def parts(self, place: int, size: int = PART) -> Iterator[str]:
        """A text from its beginning to its end, about `size` bytes at a time; a part begins with a white space."""
        source = self.files[place]
        if not source.exists():
            raise DataError(f"No text at {source}; check the path.")
        decode, read, kept = codecs.getincrementaldecoder("utf-8-sig")().decode, 0, ""
        try:
            with source.open("rb") as file:
                while block := file.read(size):
                    kept = (kept + decode(block)).replace("\r\n", "\n")
                    read += len(block)
                    cut = _last_word(kept)
                    if cut:
                        yield kept[:cut]
                        kept = kept[cut:]
            kept += decode(b"", final=True)
        except UnicodeDecodeError as error:
            near = max(0, read - len(error.object) + len(block)) + error.start
            raise DataError(f"{source} is not text in UTF-8: byte {near} is none of it; convert it first.") from error
        except OSError as error:
            raise DataError(f"{source} cannot be read: {error.strerror or error}.") from error
        if kept:
            yield kept
        elif not read:
            raise DataError(f"{source} is empty: it has no characters.")


def _last_word(text: str) -> int:
    """Where the white space before the last word begins; 0 if there is none."""
    for place in range(len(text) - 1, 0, -1):
        if text[place] in SPACES and text[place - 1] not in SPACES:
            return place
    return 0


def parts_of(texts: Sequence[str], place: int) -> Iterator[str]:
    """A text in parts that no token goes across: those of its file, or the whole.

    >>> list(parts_of(["to be", "or not"], 1))
    ['or not']
    """
    return texts.parts(place) if isinstance(texts, StoredTexts) else iter((texts[place],))


class TextFiles(NamedTuple):
    """The texts of a folder, the names of their files in it, and the folders that those are in ("" for none)."""

    names: list[str]
    texts: StoredTexts
    labels: list[str]


def read_text(path: PathLike) -> str:
    """The text of a file in UTF-8.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "hamlet.txt"
    >>> _ = path.write_text("To be, or not to be")
    >>> read_text(path)
    'To be, or not to be'
    """
    return StoredTexts([Path(path)])[0]


def read_texts(path: PathLike) -> StoredTexts:
    """The text of a file, or those of all .txt files in a folder and its folders by their names, read when asked for.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "1.txt").write_text("to be"), (folder / "2.txt").write_text("or not")
    >>> texts = read_texts(folder)
    >>> texts, list(texts), list(read_texts(folder / "1.txt"))
    (<2 texts in files>, ['to be', 'or not'], ['to be'])
    """
    return read_folder(path).texts if Path(path).is_dir() else StoredTexts([Path(path)], single=True)


def read_folder(path: PathLike) -> TextFiles:
    """The .txt files of a folder and of its folders, in order of their names.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, text in {"good/1.txt": "so warm", "bad/1.txt": "so dull"}.items():
    ...     (folder / name).parent.mkdir()
    ...     _ = (folder / name).write_text(text)
    >>> list(read_folder(folder).texts), read_folder(folder).labels
    (['so dull', 'so warm'], ['bad', 'good'])
    """
    folder = Path(path)
    files = sorted(file for file in folder.rglob(f"*{ENDING}") if file.is_file())
    if not files:
        raise DataError(f"{folder} has no {ENDING} file; a folder of texts has one for each text.")
    places = [file.relative_to(folder) for file in files]
    labels = [place.parts[0] if len(place.parts) > 1 else "" for place in places]
    return TextFiles([str(place) for place in places], StoredTexts(files), labels)
