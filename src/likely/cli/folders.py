"""Images in, one file out for each: which images are asked about, and what the answer of each is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import DataError

__all__ = ["answer_names", "asked_images", "made"]


def asked_images(images: Path) -> tuple[list[Path], Path]:
    """The image, or all images of the folder and the folders in it, and the folder that their names are told from."""
    from ..data.images import image_paths

    if not images.exists():
        raise DataError(f"No image or folder at {images}; check the path.")
    return ([images], images.parent) if images.is_file() else (image_paths(images)[0], images)


def answer_names(paths: Sequence[Path], top: Path) -> list[Path]:
    """A .png for each image, at its own place below the folder; no two have the same name.

    Images that differ by their ending alone keep it in the name of their answer.

    >>> names = answer_names([Path("in/a.jpg"), Path("in/a.png"), Path("in/dark/a.png"), Path("in/b.jpg")], Path("in"))
    >>> [name.as_posix() for name in names]
    ['a.jpg.png', 'a.png.png', 'dark/a.png', 'b.png']
    """
    own = [path.relative_to(top) for path in paths]
    whole = [path.with_name(f"{path.name}.png") for path in own]
    names = _distinct([path.with_suffix(".png") for path in own], whole)
    return names if len({_key(name) for name in names}) == len(names) else whole  # "a.jpg.png" may be there already


def _distinct(names: list[Path], otherwise: list[Path]) -> list[Path]:
    count = Counter(map(_key, names))
    return [name if count[_key(name)] == 1 else other for name, other in zip(names, otherwise, strict=True)]


def _key(name: Path) -> str:
    """What makes a file another one, also where disks do not tell capitals apart."""
    return name.as_posix().lower()


def made(folder: Path, option: str) -> None:
    """Make a folder for answers, with those that it is in."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{option} {folder} is a file; name a folder, which is made if there is none.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"Cannot make the folder {option} {folder}: {error.strerror or error}.") from error
