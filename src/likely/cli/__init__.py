"""The command line: `likely fit`, `predict`, `evaluate`, `compare`, `show`, `list`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name.

    Exit code 0: done, 2: bad input or usage, 130: stopped by the keyboard, 1: a fault of ours.
    """
    try:
        from .app import app

        app(prog_name="likely")
    except KeyboardInterrupt:  # before a command began, or while its words were read
        import sys

        from .output import stopped

        stopped()
        sys.exit(130)
