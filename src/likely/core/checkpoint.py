"""Checkpoints: the whole state of a run in one file, so that a killed one resumes to the same bits."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from . import distributed
from .errors import ModelFileError
from .files import read_file, write_file
from .spec import Spec, require

__all__ = ["Checkpoint", "Saver", "beside"]


class Checkpoint(Spec, axis="checkpoint"):
    """Where, and at most how often, the state of a run is written.

    >>> Checkpoint("run.ckpt", seconds=60)
    Checkpoint(path='run.ckpt', seconds=60)
    """

    path: str
    seconds: float = 10.0

    @classmethod
    def example(cls) -> Checkpoint:
        """A file in the working folder."""
        return cls("run.ckpt")

    def validate(self) -> None:
        """The time between writes is not negative."""
        if isinstance(self.path, os.PathLike):
            object.__setattr__(self, "path", os.fspath(self.path))
        require(self.seconds >= 0, self, "seconds", "0 or more")


def beside(checkpoint: Checkpoint | str | os.PathLike[str] | None, name: str) -> Checkpoint | None:
    """The checkpoint of a part of a fit, in a file of its own: run.ckpt becomes run.ckpt.start.

    >>> beside("run.ckpt", "start")
    Checkpoint(path='run.ckpt.start')
    """
    if checkpoint is None:
        return None
    whole = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(os.fspath(checkpoint))
    return whole.replace(path=f"{whole.path}.{name}")


class Saver:
    """Reads the state of an earlier run of the same fit, and writes that of this one from time to time."""

    def __init__(self, checkpoint: Checkpoint | str | os.PathLike[str] | None, fingerprint: dict[str, Any]) -> None:
        if isinstance(checkpoint, str | os.PathLike):
            checkpoint = Checkpoint(os.fspath(checkpoint))
        self.checkpoint = checkpoint
        self.fingerprint = fingerprint
        self.last = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """The state that an earlier run left, or None; refuses one that belongs to another fit."""
        if self.checkpoint is None or not Path(self.checkpoint.path).exists():
            return None
        header, tensors = read_file(self.checkpoint.path)
        for name, expected in self.fingerprint.items():
            stored = header.get("fingerprint", {}).get(name)
            if stored != expected:
                raise ModelFileError(
                    f"checkpoint {self.checkpoint.path} belongs to another fit: its {name} was {stored!r}, now it is "
                    f"{expected!r}. Delete the file, or give another path."
                )
        return _unpack(header["state"], tensors)

    def refuse_seeds(self, stored: list[int], expected: list[int]) -> None:
        """Refuse the state of a run from another random_state."""
        if self.checkpoint is not None and stored != expected:
            raise ModelFileError(
                f"checkpoint {self.checkpoint.path} belongs to a fit with another random_state. "
                "Delete the file, or give another path."
            )

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.checkpoint is not None and time.monotonic() - self.last >= self.checkpoint.seconds

    def write(self, state: dict[str, Any]) -> None:
        """Write the state (from process 0 only)."""
        if self.checkpoint is None or distributed.rank() != 0:
            return
        tensors: dict[str, Tensor] = {}
        write_file(self.checkpoint.path, {"fingerprint": self.fingerprint, "state": _pack(state, tensors)}, tensors)
        self.last = time.monotonic()


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Nested lists and dicts as JSON, with the tensors set aside by number."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):
        return {"pairs": [[k, _pack(v, tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [_pack(v, tensors) for v in value]
    return value


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        return {k: _unpack(v, tensors) for k, v in value["pairs"]}
    if isinstance(value, list):
        return [_unpack(v, tensors) for v in value]
    return value
