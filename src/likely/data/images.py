"""Images from files: one, a folder of them by class, and images with their masks; each error names the file.

Pixels are numbers between 0 and 1, channels first: (channels, height, width). A photograph is turned as its camera
says, transparent pixels are seen on white, and masks keep the numbers that their files hold, which are classes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.errors import DataError
from ..core.replacing import replacing

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["Images", "image_paths", "masks_of", "read_image", "read_images", "read_mask", "read_masks", "write_image"]

Colour = Literal["auto", "grey", "rgb"]
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif")
GREY = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")
SUFFIXES = ("", "_mask", "-mask", "_label", "_labels", "_segmentation")
"""What a mask may have behind the name of its image."""


@dataclass(frozen=True)
class Images:
    """What a folder of images holds, one entry per image."""

    images: np.ndarray
    """Pixels between 0 and 1, (n, channels, height, width)."""
    labels: np.ndarray | None
    """The folder that each image is in, which is its class; None where there are no folders."""
    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.images)

    def __str__(self) -> str:
        channels, height, width = self.images.shape[1:]
        kind = {1: "grey", 3: "colour"}[channels]
        classes = "" if self.labels is None else f" in {len(np.unique(self.labels))} classes"
        return f"{len(self)} {kind} image{'s' * (len(self) != 1)} of {height} × {width} pixels{classes}"


def read_image(
    path: str | os.PathLike[str], *, colour: Colour = "auto", size: int | tuple[int, int] | None = None
) -> np.ndarray:
    """An image as numbers between 0 and 1, (channels, height, width); one channel where it is grey.

    `colour` "grey" or "rgb" turns it into that; `size` is (height, width), or one number for both, to which it is
    resized.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "square.png"
    >>> write_image(path, np.full((2, 2), 0.2))
    >>> read_image(path).round(2)
    array([[[0.2, 0.2],
            [0.2, 0.2]]], dtype=float32)
    >>> read_image(path, colour="rgb", size=(4, 6)).shape
    (3, 4, 6)
    """
    _check_colour(colour)
    with _opened(path) as image:
        grey = colour == "grey" or (colour == "auto" and image.mode in GREY)
        if image.mode in DEEP and grey:
            values = np.asarray(_resized(image.convert("F"), size)) / _depth(image)
            return np.clip(values, 0, 1, dtype=np.float32)[None]
        pixels = np.asarray(_resized(_on_white(image).convert("L" if grey else "RGB"), size), np.float32) / 255
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def read_images(
    folder: str | os.PathLike[str],
    *,
    colour: Colour = "auto",
    size: int | tuple[int, int] | None = None,
    labelled: bool = True,
) -> Images:
    """All images in a folder, in the order of their names; folders in it are classes.

    With `colour="auto"` they are grey if every one is. Images of different sizes need a `size` to be resized to. Where
    there are folders, every image must be in one, unless they are not to be `labelled`: then folders mean nothing.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("dark", "light"):
    ...     (folder / name).mkdir()
    ...     write_image(folder / name / "0.png", np.full((8, 8), float(name == "light")))
    >>> photos = read_images(folder)
    >>> print(photos)
    2 grey images of 8 × 8 pixels in 2 classes
    >>> photos.labels
    array(['dark', 'light'], dtype='<U5')
    """
    _check_colour(colour)
    paths, classes = image_paths(folder)
    if labelled and any(classes) and not all(classes):
        beside, some = paths[classes.index("")], ", ".join(sorted({name for name in classes if name})[:3])
        raise DataError(
            f"{beside} lies beside folders, which are classes ({some}), and so has none; move it into one of them, or "
            "read all without classes by labelled=False."
        )
    if colour == "auto":
        colour = "grey" if all(map(_is_grey, paths)) else "rgb"
    images = _stacked(paths, [read_image(path, colour=colour, size=size) for path in paths])
    return Images(images, np.array(classes) if labelled and any(classes) else None, tuple(paths))


def read_mask(path: str | os.PathLike[str], *, size: int | tuple[int, int] | None = None) -> np.ndarray:
    """The class of each pixel, (height, width): the grey value or the palette's index that the file holds.

    Resized to `size`, a pixel gets the class of the nearest one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mask.png"
    >>> write_image(path, np.array([[0, 1], [1, 2]]))
    >>> read_mask(path)
    array([[0, 1],
           [1, 2]])
    """
    with _opened(path) as image:
        if image.mode not in (*GREY, "P"):
            colours = np.asarray(image.convert("RGB"))
            if bool((colours != colours[..., :1]).any()):
                raise DataError(
                    f"{path} is a mask in colours (mode {image.mode}); a mask holds one number per pixel, its class: "
                    "save it in grey levels or with a palette."
                )
            image = image.convert("L")
        elif image.mode in ("1", "LA", "La"):
            image = image.convert("L")
        values = np.asarray(_resized(image, size, smooth=False))
    return values.astype(np.int64)


def read_masks(
    folder: str | os.PathLike[str], like: Images, *, size: int | tuple[int, int] | None = None
) -> np.ndarray:
    """The masks of images, (n, height, width): the file in a folder that has the name of each image.

    A mask may have another ending than its image, and `_mask` or `_label` behind its name. Of several masks with the
    name of an image, the one in a folder of the same name is taken. A mask must have its image's size, or both are
    given one `size`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("images", "masks"):
    ...     (folder / name).mkdir()
    >>> write_image(folder / "images" / "cell.png", np.full((4, 4), 0.5))
    >>> write_image(folder / "masks" / "cell_mask.png", np.eye(4, dtype=int))
    >>> read_masks(folder / "masks", read_images(folder / "images"))[0, 0]
    array([1, 0, 0, 0])
    """
    chosen = masks_of(like.paths, folder)
    masks = [read_mask(path, size=size) for path in chosen]
    wanted = like.images.shape[2:]
    for mask, path, image in zip(masks, chosen, like.paths, strict=True):
        if mask.shape != wanted:
            raise DataError(
                f"The mask {path} has {_by(mask.shape)} pixels, but the image {image} has {_by(wanted)}; masks are of "
                "the size of their images, or both are given a size=(height, width)."
            )
    return np.stack(masks)


def write_image(path: str | os.PathLike[str], values: Any) -> None:
    """Write numbers between 0 and 1, (height, width) or (channels, height, width), or a mask of integers, as an image.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "grey.png"
    >>> write_image(path, np.zeros((1, 3, 5)))
    >>> read_image(path).shape
    (1, 3, 5)
    """
    from PIL import Image

    pixels = np.asarray(values)
    if pixels.ndim == 3 and len(pixels) in (1, 3):
        pixels = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise DataError(f"values has shape {np.shape(values)}; an image is (height, width), or 1 or 3 of them.")
    if pixels.dtype.kind == "f":
        if not bool((pixels >= 0).all() and (pixels <= 1).all()):
            raise DataError("values must lie between 0 and 1, or be integers from 0 to 255.")
        pixels = np.rint(pixels * 255)
    elif not bool((pixels >= 0).all() and (pixels <= 255).all()):
        raise DataError(f"values has {pixels.min()} to {pixels.max()}; integers from 0 to 255 can be written.")
    try:
        kind = Image.registered_extensions()[Path(path).suffix.lower()]
        with replacing(path) as part:
            Image.fromarray(np.ascontiguousarray(pixels, np.uint8)).save(part, kind)
    except KeyError as error:
        raise DataError(f"Cannot write {path}: end its name in one of {', '.join(ENDINGS)}.") from error
    except (OSError, ValueError) as error:
        raise DataError(f"Cannot write {path}: {getattr(error, 'strerror', None) or error}.") from error


def image_paths(folder: str | os.PathLike[str]) -> tuple[list[Path], list[str]]:
    """The image files of a folder in the order of their names, and the folder within it that each is in, or ""."""
    top = Path(folder)
    if not top.is_dir():
        raise DataError(f"{top} is not a folder." if top.exists() else f"No folder at {top}; check the path.")
    seen = (path for path in top.rglob("*") if not any(part.startswith(".") for part in path.relative_to(top).parts))
    paths = sorted(path for path in seen if path.suffix.lower() in ENDINGS and path.is_file())
    if not paths:
        raise DataError(f"{top} has no images; they end in {', '.join(ENDINGS)}.")
    return paths, [parts[0] if len(parts := path.relative_to(top).parts) > 1 else "" for path in paths]


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Image.Image]:
    """An image, turned as its camera says; what Pillow cannot read is an error that names the file."""
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                image.load()
                turned = ImageOps.exif_transpose(image)
    except FileNotFoundError as error:
        raise DataError(f"No image at {path}; check the path.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder; read_images reads all in it.") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{path} has more pixels than are safe to unpack; make it smaller first.") from error
    except (OSError, SyntaxError, ValueError, EOFError, IndexError) as error:  # what Pillow's decoders raise
        reason = "it is not an image that Pillow knows" if "cannot identify" in str(error) else str(error).rstrip(".")
        raise DataError(f"{path} cannot be read: {reason}.") from error
    yield turned


def masks_of(images: Sequence[Path], folder: str | os.PathLike[str]) -> list[Path]:
    """The file in a folder of masks that belongs to each image: by its name, then by the folders that it is in."""
    by_name: dict[str, list[Path]] = {}
    for path in image_paths(folder)[0]:
        by_name.setdefault(path.stem, []).append(path)
    chosen = [_mask_of(path, by_name, folder) for path in images]
    owner: dict[Path, Path] = {}
    for image, mask in zip(images, chosen, strict=True):
        if mask in owner:
            raise DataError(f"{mask} is the only mask for both {owner[mask]} and {image}; each image needs its own.")
        owner[mask] = image
    return chosen


def _mask_of(image: Path, by_name: dict[str, list[Path]], folder: Any) -> Path:
    named = [(rank, path) for rank, end in enumerate(SUFFIXES) for path in by_name.get(image.stem + end, [])]
    if not named:
        raise DataError(f"{folder} has no mask for {image}: a file {image.stem}.png (or {image.stem}_mask.png).")
    ranked = sorted(named, key=lambda own: (-_shared_folders(own[1], image), own[0]))
    (rank, best), *others = ranked
    if others and (_shared_folders(others[0][1], image), others[0][0]) == (_shared_folders(best, image), rank):
        raise DataError(f"{folder} has two masks for {image}: {best} and {others[0][1]}; leave one of them.")
    return best


def _shared_folders(one: Path, other: Path) -> int:
    """How many of the folders that two files are in have the same names, counted from the files upwards."""
    pairs = zip(reversed(one.parent.parts), reversed(other.parent.parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_grey(path: Path) -> bool:
    from PIL import Image

    with _known(path), Image.open(path) as image:
        return image.mode in GREY


@contextmanager
def _known(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be read: it is not an image that Pillow knows.") from error


def _on_white(image: Image.Image) -> Image.Image:
    """Without transparency."""
    from PIL import Image

    if "A" not in image.mode and "a" not in image.mode and "transparency" not in image.info:
        return image
    seen = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)


def _depth(image: Image.Image) -> float:
    """The number that is white: 16 bits, or 8 where no pixel needs more."""
    return 65535.0 if image.mode != "I" or image.getextrema()[1] > 255 else 255.0  # type: ignore[operator]


def _resized(image: Image.Image, size: int | tuple[int, int] | None, *, smooth: bool = True) -> Image.Image:
    from PIL import Image

    if size is None:
        return image
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise DataError(f"size={size!r} must be (height, width) in pixels, or one number for both.")
    how = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    return image.resize((int(sides[1]), int(sides[0])), how)


def _stacked(paths: Sequence[Path], images: Sequence[np.ndarray]) -> np.ndarray:
    first = images[0].shape[1:]
    for path, image in zip(paths, images, strict=True):
        if image.shape[1:] != first:
            raise DataError(
                f"{path} has {_by(image.shape[1:])} pixels and {paths[0]} has {_by(first)}; images of different "
                "sizes need a size=(height, width) to be resized to."
            )
    return np.stack(images)


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _check_colour(colour: str) -> None:
    if colour not in ("auto", "grey", "rgb"):
        raise DataError(f"colour={colour!r} must be auto, grey or rgb.")
