"""Files of text as they are: their encoding, and their lines."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..core.errors import DataError
from .notes import note

__all__ = ["TextFile", "decoded", "first_line"]


class TextFile(NamedTuple):
    """A file of text: where it is, and its content in UTF-8 if that is not what the file itself holds."""

    path: Path
    content: bytes | None = None

    @property
    def source(self) -> Path | bytes:
        """What polars reads."""
        return self.path if self.content is None else self.content

    @contextmanager
    def lines(self) -> Iterator[IO[str]]:
        """Its text, opened for reading; line ends stay as they are."""
        if self.content is not None:
            yield io.StringIO(self.content.decode(), newline="")
            return
        with _opened(self.path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream


def decoded(path: Path, encoding: str | None) -> TextFile:
    """The file as it is where it is UTF-8, else its content in UTF-8; a note says which encoding was taken."""
    with _opened(path, "rb") as stream:
        if encoding is None and _is_utf8(stream):
            return TextFile(path)
        stream.seek(0)
        raw = stream.read()
    chosen = encoding or _guessed(raw)
    try:
        text = raw.decode(chosen)
    except LookupError:
        raise DataError(f"encoding={encoding!r} is not known; utf-8, utf-16, latin-1 and cp1252 are.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in {chosen} (byte {error.start}); give its encoding.") from error
    if "\0" in text:
        raise DataError(f"{path} is not text in {chosen}: it holds bytes that are 0; give its encoding.")
    if encoding is None:
        note(f"{path} is not UTF-8; read as {chosen}.")
    return TextFile(path, text.removeprefix("\ufeff").encode())


@contextmanager
def _opened(path: Path, mode: str, **how: Any) -> Iterator[IO[Any]]:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, mode, **how) as stream:
            yield stream
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        raise DataError(f"{path} cannot be read: {reason}.") from error


def _guessed(raw: bytes) -> str:
    """The encoding of text that is not UTF-8: half of the bytes of Latin letters in UTF-16 are 0."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    first, second = 0 in raw[::2], 0 in raw[1::2]
    return "cp1252" if first == second else "utf-16-be" if first else "utf-16-le"


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


def first_line(error: BaseException) -> str:
    """What an error says, cut to a line."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
