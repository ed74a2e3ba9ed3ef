"""Model files: one safetensors file, with what was chosen and learned as JSON in its header. Loading runs no code.

A file is written beside its target, flushed to the disk and then renamed, so that a crash, a full disk or a kill leaves
the old file as it was. A checksum over the header and the tensors tells a damaged file from a sound one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, uint8

from .errors import ModelFileError
from .header import FORMAT, KEY, as_path, checksum, first_line, opened
from .layout import laid_out
from .replacing import replacing

__all__ = ["check_tensors", "read_file", "write_file"]


def write_file(path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write atomically: `path` is either what it was or the complete new file, never a part of it."""
    target = as_path(path)
    if target.is_dir():
        raise ModelFileError(f"Cannot write {target}: it is a folder; give a file name in it.")
    if target.exists() and not target.is_file():
        raise ModelFileError(f"Cannot write {target}: it is a device or pipe; give the name of a file.")
    text = json.dumps({"format": FORMAT, **header})
    separate = _separate(tensors)
    metadata = {KEY: f"{_checksum(text, separate)} {text}"}
    try:
        with replacing(target) as part:
            save_file(separate, part, metadata=metadata)
    except (OSError, SafetensorError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        raise ModelFileError(
            f"Cannot write {target}: {reason}. Nothing was changed there; "
            "check that the folder exists, is writable and has room."
        ) from error


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file, or a `ModelFileError` that says what is wrong with it."""
    with opened(path) as (stream, header):
        stream.seek(0)
        content = stream.read()
        try:
            tensors = {name: laid_out(value) for name, value in load(content).items()}
        except SafetensorError as error:
            raise ValueError(first_line(error)) from error
        header.verify(memoryview(content))
    return header.description, tensors


def check_tensors(expected: Mapping[str, tuple[int, ...]], tensors: Mapping[str, Tensor]) -> None:
    """The file holds just the tensors that its specs ask for, in the right shapes."""
    missing, extra = sorted(set(expected) - set(tensors)), sorted(set(tensors) - set(expected))
    if missing or extra:
        raise ModelFileError(f"The file does not fit its own specs: missing {missing[:3]}, unexpected {extra[:3]}.")
    for name, shape in expected.items():
        stored = tuple(tensors[name].shape)
        if stored != tuple(shape):
            raise ModelFileError(f"The file does not fit its own specs: {name} has shape {stored}, not {tuple(shape)}.")


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors on the CPU; copied only where two share their memory, which a file cannot express."""
    copies: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        memory = plain.untyped_storage().data_ptr()
        copies[name] = plain.clone() if memory in seen else plain
        seen.add(memory)
    return copies


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """The checksum of contiguous tensors."""
    parts = (
        (name, str(own.dtype).removeprefix("torch."), tuple(own.shape), _bytes(own)) for name, own in tensors.items()
    )
    return checksum(text, parts)


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(uint8).numpy().data if tensor.numel() else memoryview(b"")
