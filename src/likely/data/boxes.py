"""Boxes around objects, from the files of annotation programs: COCO's JSON, and Pascal VOC's XML, one for each image.

Both become the same: images (n, channels, height, width), and for each an array (k, 4) of xmin, ymin, xmax, ymax in
pixels with k labels. Where images are resized, boxes are too. What reaches out of its image is cut off there, and what
has no area, or is a crowd, is left out; all that is said, with the file. A file that says an image has another size
than it has is refused, since its boxes would lie elsewhere.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..core.errors import DataError, ReadingNote
from .images import ENDINGS, Colour, image_paths, read_image

__all__ = ["Boxes", "read_boxes", "read_coco", "read_voc"]


@dataclass(frozen=True)
class Boxes:
    """Images with the boxes of their objects, one entry per image: what `Detector.fit` takes."""

    images: np.ndarray
    """Pixels between 0 and 1, (n, channels, height, width)."""
    boxes: tuple[np.ndarray, ...]
    """(k, 4) for each image: xmin, ymin, xmax, ymax in pixels."""
    labels: tuple[np.ndarray, ...]
    """The class of each box."""
    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.images)

    def __str__(self) -> str:
        words, counts = np.unique(np.concatenate(self.labels), return_counts=True)
        shown = ", ".join(f"{count} {word}" for word, count in zip(words, counts, strict=True)) or "no boxes"
        height, width = self.images.shape[2:]
        return f"{len(self)} image{'s' * (len(self) != 1)} of {height} × {width} pixels with {shown}"


class _Annotated(NamedTuple):
    """What a file says of one image: the boxes in its own pixels, before anything is resized."""

    path: Path
    boxes: list[list[float]]
    labels: list[str]
    source: str
    sides: tuple[int, int] | None = None
    """Width and height, if it says them."""


def read_boxes(
    annotations: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    *,
    colour: Colour = "auto",
    size: int | tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
) -> Boxes:
    """Images and boxes of either form: `read_coco` of a .json file, `read_voc` of a folder of .xml files.

    `images` is the folder with the images, or one image, which is then read alone.

    >>> import tempfile
    >>> from likely.data import write_image
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_image(folder / "a.png", np.zeros((8, 12)))
    >>> _ = (folder / "a.xml").write_text("<annotation><filename>a.png</filename></annotation>")
    >>> print(read_boxes(folder, size=(4, 6)))
    1 image of 4 × 6 pixels with no boxes
    """
    place = Path(annotations)
    reader = read_voc if place.is_dir() or place.suffix.lower() == ".xml" else read_coco
    return reader(place, images, colour=colour, size=size, classes=classes)


def read_coco(
    path: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    *,
    colour: Colour = "auto",
    size: int | tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
) -> Boxes:
    """Images and boxes of a COCO file: `images`, `annotations` (bbox: x, y, width, height) and `categories`.

    Images lie in the folder `images`, by default beside the file; if that is one image, it is read alone. With
    `classes`, other labels are an error that names the file. Crowds (`iscrowd`), whose box is around many objects, are
    left out, and a note says how many.

    >>> import tempfile
    >>> from likely.data import write_image
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_image(folder / "a.png", np.zeros((8, 12)))
    >>> content = {"images": [{"id": 7, "file_name": "a.png"}], "categories": [{"id": 1, "name": "cell"}],
    ...     "annotations": [{"image_id": 7, "category_id": 1, "bbox": [2, 1, 4, 3]}]}
    >>> _ = (folder / "boxes.json").write_text(json.dumps(content))
    >>> read_coco(folder / "boxes.json").boxes[0]
    array([[2., 1., 6., 4.]])
    """
    file = Path(path)
    content = _json(file)
    names = {entry["id"]: str(entry["name"]) for entry in _entries(content, "categories", ("id", "name"), file)}
    folder, alone = _place(file.parent if images is None else Path(images))
    annotated = {
        entry["id"]: _Annotated(folder / str(entry["file_name"]), [], [], str(file), _sides(entry))
        for entry in _entries(content, "images", ("id", "file_name"), file)
    }
    crowds = 0
    for number, entry in enumerate(_entries(content, "annotations", ("image_id", "category_id", "bbox"), file)):
        if entry.get("iscrowd"):
            crowds += 1
            continue
        if entry["image_id"] not in annotated:
            raise DataError(
                f"{file}: annotation {number} is of image {entry['image_id']!r}, which is not in its images."
            )
        if entry["category_id"] not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise DataError(
                f"{file}: annotation {number} has category {entry['category_id']!r}; its categories are {known}."
            )
        x, y, width, height = _four(entry["bbox"], f"{file}: annotation {number} has the bbox")
        own = annotated[entry["image_id"]]
        own.boxes.append([x, y, x + width, y + height])
        own.labels.append(names[entry["category_id"]])
    if crowds:
        note = "1 box of a crowd (iscrowd) is" if crowds == 1 else f"{crowds} boxes of crowds (iscrowd) are"
        warnings.warn(f"{file}: {note} left out.", ReadingNote, stacklevel=3)
    return _read(_chosen(list(annotated.values()), alone, file), colour, size, classes)


def read_voc(
    folder: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    *,
    colour: Colour = "auto",
    size: int | tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
) -> Boxes:
    """Images and boxes of a folder of Pascal VOC files, an .xml for each image.

    Images lie in the folder `images`, by default in the same one or in `JPEGImages` beside it; if that is one image, it
    is read alone. An image without a file of its own is not read.

    Pascal VOC counts pixels from 1 and a box has those from xmin to xmax, both included: (1, 1, w, h) is the whole
    image, which here is (0, 0, w, h), so that xmin and ymin become less by 1. Many programs count from 0 instead: where
    any xmin or ymin of the folder is below 1, all corners are taken as they stand.

    >>> import tempfile
    >>> from likely.data import write_image
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_image(folder / "a.png", np.zeros((8, 12)))
    >>> box = "<bndbox><xmin>2</xmin><ymin>1</ymin><xmax>6</xmax><ymax>4</ymax></bndbox>"
    >>> text = f"<annotation><filename>a.png</filename><object><name>cell</name>{box}</object></annotation>"
    >>> _ = (folder / "a.xml").write_text(text)
    >>> print(read_voc(folder))
    1 image of 8 × 12 pixels with 1 cell
    >>> read_voc(folder).boxes[0]
    array([[1., 0., 6., 4.]])
    """
    top = Path(folder)
    files = [top] if top.suffix.lower() == ".xml" else sorted(top.glob("*.xml")) if top.is_dir() else []
    if not files:
        raise DataError(
            f"{top} has no .xml files; Pascal VOC has one for each image." if top.is_dir() else f"No folder at {top}."
        )
    place, alone = _place(_images_of(files[0].parent, images))
    by_stem = {path.stem: path for path in image_paths(place)[0]}
    annotated = [_voc(file, place, by_stem) for file in files]
    if all(min(box[:2]) >= 1 for own in annotated for box in own.boxes):
        for own in annotated:
            own.boxes[:] = [[xmin - 1, ymin - 1, xmax, ymax] for xmin, ymin, xmax, ymax in own.boxes]
    return _read(_chosen(annotated, alone, top), colour, size, classes)


def _voc(file: Path, place: Path, by_stem: dict[str, Path]) -> _Annotated:
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}.") from error
    named = root.findtext("filename") or file.stem
    path = place / named if (place / named).is_file() else by_stem.get(file.stem, place / named)
    size = root.find("size")
    sides = None if size is None else _sides({side: size.findtext(side) for side in ("width", "height")})
    annotated = _Annotated(path, [], [], str(file), sides)
    for number, element in enumerate(root.iter("object")):
        name, corners = element.findtext("name"), element.find("bndbox")
        if not name or corners is None:
            raise DataError(f"{file}: object {number} has no name or no bndbox.")
        values = [corners.findtext(edge) for edge in ("xmin", "ymin", "xmax", "ymax")]
        annotated.boxes.append(_four(values, f"{file}: object {number} has the bndbox"))
        annotated.labels.append(name.strip())
    return annotated


def _images_of(folder: Path, images: str | os.PathLike[str] | None) -> Path:
    if images is not None:
        return Path(images)
    own = any(path.suffix.lower() in ENDINGS for path in folder.iterdir())
    beside = next(
        (folder.parent / name for name in ("JPEGImages", "images") if (folder.parent / name).is_dir()), folder
    )
    return folder if own else beside


def _place(images: Path) -> tuple[Path, Path | None]:
    """The folder with the images, and the one that is to be read alone, if it is one."""
    return (images.parent, images) if images.is_file() else (images, None)


def _chosen(annotated: list[_Annotated], alone: Path | None, source: Path) -> list[_Annotated]:
    if alone is None:
        return annotated
    chosen = [own for own in annotated if own.path.resolve() == alone.resolve()]
    if not chosen:
        raise DataError(f"{source} says nothing of {alone}.")
    return chosen


def _sides(entry: dict[str, Any]) -> tuple[int, int] | None:
    """Width and height that a file gives an image; None where it gives none, or 0 as some programs do."""
    try:
        width, height = (int(float(entry.get(side) or 0)) for side in ("width", "height"))
    except (TypeError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _read(annotated: list[_Annotated], colour: Colour, size: Any, classes: Sequence[str] | None) -> Boxes:
    """Images from their files, with boxes in their pixels."""
    if not annotated:
        raise DataError("The annotations name no image.")
    shapes = [read_image(own.path).shape for own in annotated]
    if colour == "auto":
        colour = "grey" if all(shape[0] == 1 for shape in shapes) else "rgb"
    images, boxes, labels = [], [], []
    for own, (_, height, width) in zip(annotated, shapes, strict=True):
        unknown = sorted(set(own.labels) - set(classes)) if classes is not None else []
        if unknown:
            known = ", ".join(map(repr, classes or ()))
            raise DataError(f"{own.source} has the class {unknown[0]!r} for {own.path.name}; known: {known}.")
        if own.sides not in (None, (width, height)):
            said = " × ".join(map(str, own.sides or ()))
            raise DataError(
                f"{own.source} says that {own.path.name} has {said} pixels (width × height), but {own.path} has "
                f"{width} × {height}; give the image that its boxes were drawn on, or correct the file."
            )
        image = read_image(own.path, colour=colour, size=size)
        inside, kept = _inside(own, height, width)
        scale = np.array([image.shape[2] / width, image.shape[1] / height] * 2)
        images.append(image)
        boxes.append(inside * scale)
        labels.append(np.array([word for word, there in zip(own.labels, kept, strict=True) if there], dtype=str))
    first = images[0].shape
    for own, image in zip(annotated, images, strict=True):
        if image.shape != first:
            now, then = (f"{shape[1]} × {shape[2]}" for shape in (image.shape, first))
            raise DataError(
                f"{own.path} has {now} pixels and {annotated[0].path} has {then}; images of different sizes need a "
                "size=(height, width) to be resized to."
            )
    return Boxes(np.stack(images), tuple(boxes), tuple(labels), tuple(own.path for own in annotated))


def _inside(own: _Annotated, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The boxes that an image has, cut at its border, and which those are."""
    given = np.array(own.boxes, dtype=np.float64).reshape(-1, 4)
    limits = np.array([width, height, width, height], dtype=np.float64)
    cut = np.clip(given, 0, limits)
    kept: np.ndarray = np.all(cut[:, 2:] > cut[:, :2], axis=1)
    if not kept.all():
        box = ", ".join(f"{value:g}" for value in given[~kept][0])
        count = int((~kept).sum())
        boxes, left = ("box", "has no area in it and is") if count == 1 else ("boxes", "have no area in it and are")
        note = f"{own.source}: {count} {boxes} of {own.path.name} {left} left out, "
        warnings.warn(f"{note}such as ({box}).", ReadingNote, stacklevel=5)
    reach = np.maximum(given - limits, -given).max(1, initial=0.0) > 1
    if bool((reach & kept).any()):
        box = ", ".join(f"{value:g}" for value in given[reach & kept][0])
        count = int((reach & kept).sum())
        boxes, cut_off = ("box reaches", "is") if count == 1 else ("boxes reach", "are")
        note = f"{own.source}: {count} {boxes} out of {own.path.name}, which has {width} × {height} pixels, and "
        warnings.warn(f"{note}{cut_off} cut off there, such as ({box}).", ReadingNote, stacklevel=5)
    return cut[kept], kept


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"No file at {file}; check the path.") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{file} is not a COCO file: it holds a {type(content).__name__}, not images and annotations.")
    return content


def _entries(content: dict[str, Any], name: str, keys: tuple[str, ...], file: Path) -> list[dict[str, Any]]:
    entries = content.get(name)
    if not isinstance(entries, list):
        raise DataError(f"{file} is not a COCO file: it has no list of {name}.")
    for number, entry in enumerate(entries):
        missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise DataError(f"{file}: entry {number} of {name} has no {missing[0]}.")
    return entries


def _four(values: Any, what: str) -> list[float]:
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 4 or not np.isfinite(numbers).all():
        raise DataError(f"{what} {values!r}; four numbers are needed.")
    return numbers
