"""A new file in a room is all it takes: its specs are registered, and are names of the room."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from .spec import Spec, registered

__all__ = ["open_room"]

CLOSED = "compiled"
"""Folders of this name hold loops for the compiler, which is loaded where they are used."""


def open_room(package: str, axis: type[Spec]) -> None:
    """Import every file of a package and of its folders; specs of `axis` that its public list lacks join it."""
    room = sys.modules[package]
    _import_files(package)
    for name, cls in registered(axis).items():
        if cls.__module__.startswith(f"{package}.") and not hasattr(room, name):
            setattr(room, name, cls)
            room.__all__.append(name)


def _import_files(package: str) -> None:
    for file in pkgutil.iter_modules(sys.modules[package].__path__):
        name = f"{package}.{file.name}"
        importlib.import_module(name)
        if file.ispkg and file.name != CLOSED:
            _import_files(name)
