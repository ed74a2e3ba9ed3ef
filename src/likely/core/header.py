"""What a model file says before its tensors: read without torch, so that a look at a file is quick.

A safetensors file is 8 bytes with the length of a table (little-endian), the table as JSON (kind, shape and place of
each tensor, and `__metadata__`), and the bytes of the tensors. One key of the metadata is ours: a checksum, a space,
and the description of the model as JSON.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO

from .errors import ModelFileError

__all__ = ["FORMAT", "KEY", "Content", "Header", "Stored", "as_path", "checksum", "first_line", "opened"]

FORMAT = 1
"""Version of the file layout; a newer one is refused, not guessed at."""
KEY = "likely"
"""Under which the header is kept: its checksum, a space, and JSON. One key, so that equal models have equal bytes."""
KINDS: dict[Any, tuple[str, int]] = {
    "BOOL": ("bool", 1),
    **{f"I{bits}": (f"int{bits}", bits // 8) for bits in (8, 16, 32, 64)},
    **{f"U{bits}": (f"uint{bits}", bits // 8) for bits in (8, 16, 32, 64)},
    **{f"F{bits}": (f"float{bits}", bits // 8) for bits in (16, 32, 64)},
    "BF16": ("bfloat16", 2),
    "C64": ("complex64", 8),
}
"""The kinds of number by safetensors' names: torch's name, and the bytes of one."""
Content = bytes | memoryview | mmap
"""All bytes of a file, in memory or mapped into it."""
CODES = {"float32": "f", "float64": "d"}
"""How `struct` names the kinds that parameters have."""


@dataclass(frozen=True)
class Stored:
    """One tensor in a file: its kind, its shape, and the bytes of the file that hold it."""

    dtype: str
    shape: tuple[int, ...]
    place: slice

    def values(self, content: Content) -> list[float]:
        """Its numbers, row by row, for a tensor of few."""
        return list(struct.unpack(f"<{math.prod(self.shape)}{CODES[self.dtype]}", content[self.place]))


@dataclass(frozen=True)
class Header:
    """The description of a model, and where its tensors are."""

    source: Path
    sum: str
    text: str
    description: dict[str, Any]
    tensors: Mapping[str, Stored]

    def verify(self, content: Content) -> None:
        """Raise a `ModelFileError` unless all bytes of the file are those that were written."""
        parts = ((name, own.dtype, own.shape, content[own.place]) for name, own in self.tensors.items())
        if self.sum != checksum(self.text, parts):
            raise ModelFileError(
                f"{self.source} is damaged: its content does not match its checksum. Take a copy, or fit again."
            )


@contextmanager
def opened(path: Any) -> Iterator[tuple[BinaryIO, Header]]:
    """A model file and its header; what is wrong with either, here or inside, is a `ModelFileError` that says it."""
    source = as_path(path)
    if not source.is_file():
        reason = "it is a folder" if source.is_dir() else "there is none"
        raise ModelFileError(f"No model file at {source}: {reason}.")
    try:
        with open(source, "rb") as stream:  # one handle throughout: a file that is replaced meanwhile is read as it was
            yield stream, _read(stream, source)
    except ModelFileError:
        raise
    except (OSError, ValueError, ArithmeticError, RuntimeError, TypeError, KeyError) as error:
        raise ModelFileError(f"{source} is damaged or not a model file of Likely ({first_line(error)}).") from error


def checksum(text: str, parts: Iterable[tuple[str, str, tuple[int, ...], Any]]) -> str:
    """CRC-32 of the description and of the name, kind, shape and bytes of each tensor, in order of their names."""
    value = zlib.crc32(text.encode())
    for name, dtype, shape, content in sorted(parts, key=lambda part: part[0]):
        value = zlib.crc32(content, zlib.crc32(f"{name} torch.{dtype} {shape}".encode(), value))
    return f"{value:08x}"


def as_path(path: Any) -> Path:
    """The name of a file, or an error that says why it cannot be one."""
    try:
        name = Path(os.fsdecode(path))
        name.lstat()
    except FileNotFoundError:
        return name
    except NotADirectoryError:
        raise ModelFileError(f"path {name} leads through a file as if it were a folder.") from None
    except (TypeError, ValueError, OSError) as error:
        shown = repr(path) if len(repr(path)) < 100 else f"{repr(path)[:99]}…"
        raise ModelFileError(f"path must be the name of a file; found {shown} ({first_line(error)}).") from error
    return name


def first_line(problem: object) -> str:
    """The first line of a message."""
    return (str(problem).splitlines() or [type(problem).__name__])[0][:200]


def _read(stream: BinaryIO, source: Path) -> Header:
    """The header, before anything large is read."""
    size = os.fstat(stream.fileno()).st_size
    length = int.from_bytes(stream.read(8), "little")
    if length > size - 8:
        raise ValueError("its header is cut off")
    table = json.loads(stream.read(length).decode())
    if not isinstance(table, dict):
        raise ValueError("its header is not a table of tensors")
    metadata = table.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(KEY), str):
        raise ModelFileError(f"{source} is a safetensors file, but not one that Likely wrote.")
    own, _, text = metadata[KEY].partition(" ")
    description = json.loads(text)
    _check_format(source, description)
    tensors = {name: _stored(name, entry, 8 + length, size) for name, entry in table.items()}
    return Header(source, own, text, description, tensors)


def _stored(name: str, entry: Any, start: int, size: int) -> Stored:
    """Where a tensor is, if it lies in the file and has the bytes that its shape asks for."""
    dtype, width = KINDS[entry["dtype"]]
    shape, (first, last) = entry["shape"], entry["data_offsets"]
    counts = [*shape, first, last]
    if not all(type(count) is int and 0 <= count <= size for count in counts):
        raise ValueError(f"tensor {name} does not lie in the file")
    if last - first != math.prod(shape) * width or start + last > size:
        raise ValueError(f"tensor {name} is cut off")
    return Stored(dtype, tuple(shape), slice(start + first, start + last))


def _check_format(source: Path, description: Any) -> None:
    if not isinstance(description, dict):
        raise ModelFileError(f"{source} has a header that is not a description of a model ({first_line(description)}).")
    version = description.get("format")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{source} has no readable format version ({first_line(repr(version))}).")
    if version > FORMAT:
        raise ModelFileError(
            f"{source} has format {version}; this Likely reads up to {FORMAT}. Install a newer Likely to load it."
        )
