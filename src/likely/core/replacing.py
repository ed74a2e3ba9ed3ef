"""Files that are whole or as they were: written beside their target, flushed to the disk, and then renamed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]

SHOWN = 40
"""Letters of the target's name in that of the part, since systems limit the length of a name."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file to write; it takes the place of `path` if the block ends, and is removed if it raises.

    A link stays a link, a file keeps its permissions, and a device or pipe (/dev/stdout) is written to as it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(path) as part:
    ...     _ = part.write_text("1 2 3")
    >>> path.read_text(), part.exists()
    ('1 2 3', False)
    """
    target = Path(os.path.realpath(path))
    if Path(path).exists() and not (target.is_file() or target.is_dir()):
        yield Path(path)
        return
    part = target.with_name(f".{target.name[:SHOWN]}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        part.touch()
        mode = (target if target.exists() else part).stat().st_mode
        yield part
        os.chmod(part, mode & 0o777)  # what the folder gives new files, not the private one of a temporary file
        with open(part, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(part, target)
        _sync_folder(target.parent)
    finally:
        _remove(part)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system allows a folder to be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(part: Path) -> None:
    try:
        part.unlink(missing_ok=True)
    except (OSError, ValueError):  # the folder is gone, or its name is not a valid one: there is nothing to remove
        return
