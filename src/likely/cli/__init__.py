"""The command line: `likely fit`, `predict`, `evaluate`, `compare`, `show`, `list`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name. Exit code 0: done, 2: bad input or usage, 1: a fault of ours."""
    from .app import app

    app(prog_name="likely")
