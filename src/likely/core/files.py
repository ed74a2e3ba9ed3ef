"""Model files: one safetensors file, what was chosen and learned as JSON in its header. Data only; loading runs no code.

A file is written beside its target, flushed to the disk and then renamed, so that a crash, a full disk or a kill leaves
the old file as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .errors import ModelFileError

__all__ = ["FORMAT", "check_tensors", "read_file", "write_file"]

FORMAT = 1
"""Version of the file layout; a newer one is refused, not guessed at."""

KEY = "likely"


def write_file(path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write atomically: `path` is either what it was or the complete new file, never a part of it."""
    target = Path(path)
    if target.is_dir():
        raise ModelFileError(f"Cannot write {target}: it is a folder; give a file name in it.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    text = json.dumps({"format": FORMAT, **header})
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    try:
        save_file(plain, temporary, metadata={KEY: text})
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelFileError(
            f"Cannot write {target}: {reason}. Nothing was changed there; "
            "check that the folder exists, is writable and has room."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file, or a `ModelFileError` that says what is wrong with it."""
    source = Path(path)
    if not source.is_file():
        raise ModelFileError(f"No model file at {source}.")
    try:
        with safe_open(source, framework="pt") as stream:
            metadata = stream.metadata() or {}
            header = json.loads(metadata.get(KEY, "null"))
            if not isinstance(header, dict):
                raise ModelFileError(f"{source} is a safetensors file, but not one that Likely wrote.")
            _check_format(source, header)
            tensors = {name: stream.get_tensor(name).clone() for name in stream.keys()}
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, RecursionError, OverflowError, RuntimeError, TypeError) as error:
        raise ModelFileError(f"{source} is damaged or not a model file of Likely ({_first_line(error)}).") from error
    return header, tensors


def check_tensors(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, Tensor]) -> None:
    """The file holds just the tensors that its specs ask for, in the right shapes, and numbers only."""
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or extra:
        raise ModelFileError(f"The file does not fit its own specs: missing {missing[:3]}, unexpected {extra[:3]}.")
    for name, shape in expected.items():
        if tuple(found[name].shape) != tuple(shape):
            raise ModelFileError(
                f"The file does not fit its own specs: {name} has shape {tuple(found[name].shape)}, not {tuple(shape)}."
            )


def _check_format(source: Path, header: Mapping[str, Any]) -> None:
    version = header.get("format")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{source} has no readable format version ({version!r}).")
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


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
