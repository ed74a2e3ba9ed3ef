"""A new file in a room is all it takes: its specs are registered, and are names of the room."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from .spec import Spec, registered

__all__ = ["open_room"]


def open_room(package: str, axis: type[Spec]) -> None:
    """Import every file of a package; specs of `axis` that its public list does not name yet join it."""
    room = sys.modules[package]
    for found in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{package}.{found.name}")
    for name, cls in registered(axis).items():
        if cls.__module__.startswith(f"{package}.") and not hasattr(room, name):
            setattr(room, name, cls)
            room.__all__.append(name)
