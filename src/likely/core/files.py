"""Model files: one safetensors file, with what was chosen and learned as JSON in its header. Loading runs no code.

A file is written beside its target, flushed to the disk and then renamed, so that a crash, a full disk or a kill leaves
the old file as it was. A checksum over the header and the tensors tells a damaged file from a sound one.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, uint8

from .errors import ModelFileError
from .layout import laid_out

__all__ = ["FORMAT", "check_tensors", "read_file", "write_file"]

FORMAT = 1
"""Version of the file layout; a newer one is refused, not guessed at."""

KEY = "likely"
"""Under which the header is kept: its checksum, a space, and JSON. One key, so that equal models have equal bytes."""


def write_file(path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write atomically: `path` is either what it was or the complete new file, never a part of it."""
    target = _as_path(path)
    if target.is_dir():
        raise ModelFileError(f"Cannot write {target}: it is a folder; give a file name in it.")
    if target.exists() and not target.is_file():
        raise ModelFileError(f"Cannot write {target}: it is a device or pipe; give the name of a file.")
    target = Path(os.path.realpath(target))  # a link stays a link
    temporary = target.with_name(f".{target.name[:40]}.{os.getpid()}-{threading.get_ident()}.part")
    text = json.dumps({"format": FORMAT, **header})
    separate = _separate(tensors)
    metadata = {KEY: f"{_checksum(text, separate)} {text}"}
    try:
        temporary.touch()
        mode = (target if target.exists() else temporary).stat().st_mode
        save_file(separate, temporary, metadata=metadata)
        os.chmod(temporary, mode & 0o777)  # what the folder gives new files, not the private one of a temporary file
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except (OSError, SafetensorError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)
        raise ModelFileError(
            f"Cannot write {target}: {reason}. Nothing was changed there; "
            "check that the folder exists, is writable and has room."
        ) from error
    finally:
        _remove(temporary)


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file, or a `ModelFileError` that says what is wrong with it."""
    source = _as_path(path)
    if not source.is_file():
        found = "it is a folder" if source.is_dir() else "there is none"
        raise ModelFileError(f"No model file at {source}: {found}.")
    try:
        with open(source, "rb") as stream:  # one handle throughout: a file that is replaced meanwhile is read as it was
            checksum, text = _read_header(stream, source)
            header = json.loads(text)
            _check_format(source, header)
            stream.seek(0)
            tensors = {name: laid_out(value) for name, value in load(stream.read()).items()}
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, ArithmeticError, RuntimeError, TypeError, KeyError) as error:
        raise ModelFileError(f"{source} is damaged or not a model file of Likely ({_first_line(error)}).") from error
    if checksum != _checksum(text, tensors):
        raise ModelFileError(
            f"{source} is damaged: its content does not match its checksum. Take a copy, or fit again."
        )
    return header, tensors


def check_tensors(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, Tensor]) -> None:
    """The file holds just the tensors that its specs ask for, in the right shapes."""
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or extra:
        raise ModelFileError(f"The file does not fit its own specs: missing {missing[:3]}, unexpected {extra[:3]}.")
    for name, shape in expected.items():
        if tuple(found[name].shape) != tuple(shape):
            raise ModelFileError(
                f"The file does not fit its own specs: {name} has shape {tuple(found[name].shape)}, not {tuple(shape)}."
            )


def _read_header(stream: BinaryIO, source: Path) -> tuple[str, str]:
    """The checksum and the JSON text, before anything large is read."""
    length = int.from_bytes(stream.read(8), "little")
    if length > os.fstat(stream.fileno()).st_size - 8:
        raise ValueError("its header is cut off")
    table = json.loads(stream.read(length).decode())
    if not isinstance(table, dict):
        raise ValueError("its header is no table of tensors")
    metadata = table.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get(KEY), str):
        raise ModelFileError(f"{source} is a safetensors file, but not one that Likely wrote.")
    checksum, _, text = metadata[KEY].partition(" ")
    return checksum, text


def _as_path(path: Any) -> Path:
    try:
        found = Path(os.fsdecode(path))
        found.lstat()
    except FileNotFoundError:
        return found
    except NotADirectoryError:
        raise ModelFileError(f"path {found} leads through a file as if it were a folder.") from None
    except (TypeError, ValueError, OSError) as error:
        shown = repr(path) if len(repr(path)) < 100 else f"{repr(path)[:99]}…"
        raise ModelFileError(f"path must be the name of a file; found {shown} ({_first_line(error)}).") from error
    return found


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors on the CPU; copied only where two share their memory, which a file cannot express."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        memory = plain.untyped_storage().data_ptr()
        found[name] = plain.clone() if memory in seen else plain
        seen.add(memory)
    return found


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 of the header and of the name, kind, shape and bytes of each tensor, in order of their names."""
    value = zlib.crc32(text.encode())
    for name, tensor in sorted(tensors.items()):
        value = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), value)
        if tensor.numel():
            value = zlib.crc32(tensor.reshape(-1).view(uint8).numpy().data, value)
    return f"{value:08x}"


def _check_format(source: Path, header: Any) -> None:
    if not isinstance(header, dict):
        raise ModelFileError(f"{source} has a header that is not a description of a model ({_first_line(header)}).")
    version = header.get("format")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{source} has no readable format version ({_first_line(repr(version))}).")
    if version > FORMAT:
        raise ModelFileError(
            f"{source} has format {version}; this Likely reads up to {FORMAT}. Install a newer Likely to load it."
        )


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system allows a folder to be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(temporary: Path) -> None:
    try:
        temporary.unlink(missing_ok=True)
    except (OSError, ValueError):  # the folder is gone, or its name is no name: there is nothing to remove
        return


def _first_line(problem: object) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:200]
