"""`likely segment`: the class of each pixel of images, of any size, written and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from ..core.plural import counted
from .folders import answer_names, asked_images, made
from .options import JsonOption, ModelArgument
from .output import lines, number, print_json, save_picture

if TYPE_CHECKING:
    import numpy as np

    from ..models import Classifier

__all__ = ["segment"]


def segment(
    model: ModelArgument,
    images: Annotated[
        Path, typer.Argument(metavar="IMAGES", help="An image, or a folder of PNG or JPEG images.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Write a mask for each image into a folder.")
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", metavar="FOLDER", help="Draw images with their classes into a folder."),
    ] = None,
    masks: Annotated[
        Path | None, typer.Option("--masks", metavar="FOLDER", help="True masks, by name: tells IoU and Dice.")
    ] = None,
    tile: Annotated[
        int | None, typer.Option("--tile", metavar="PIXELS", help="Larger images are cut into tiles of this side.")
    ] = None,
    flips: Annotated[
        bool, typer.Option("--flips", help="Average over the image turned and mirrored: better, eight times as long.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say which class each pixel of IMAGES has, by a model that `likely fit IMAGES --masks FOLDER` wrote.

    Images may be of any size. A mask has the numbers of the classes, as the masks of the fit had, and lies where its
    image does in the folder.
    """
    from ..data.images import masks_of, read_image, read_mask
    from ..models.segmentation import segment as segmented
    from .images import load_classifier

    fitted = load_classifier(model, pixels=True)
    paths, top = asked_images(images)
    for folder, option in ((out, "--out"), (pictures, "--pictures")):
        if folder is not None:
            made(folder, option)
    truth = None if masks is None else dict(zip(paths, masks_of(paths, masks), strict=True))
    colour: Any = "grey" if fitted.in_shape_[0] == 1 else "rgb"
    rows: list[dict[str, Any]] = []
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for path, name in zip(
        paths, answer_names(paths, top), strict=True
    ):  # one after the other: a folder may hold more than the memory
        image = read_image(path, colour=colour)
        answer = segmented(fitted, [image], tile=tile, flips=flips)
        covered = {str(label): float(answer.fraction(label)[0]) for label in fitted.classes_.tolist()}
        rows.append({"image": path.relative_to(top).as_posix(), **covered})
        for folder in (out, pictures):
            if folder is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if out is not None:
            _write(answer.labels[0], fitted, out / name)
        if pictures is not None:
            _draw(image, answer, pictures / name)
        if truth is not None:
            pairs.append((read_mask(truth[path]), answer.labels[0]))
    measured = None if truth is None else _measured(fitted, pairs, paths)
    if json:
        told = {} if measured is None else {"iou": _by_class(measured, "iou"), "dice": _by_class(measured, "dice")}
        right = {} if measured is None else {"accuracy": measured.accuracy}
        print_json({"model": str(model), "images": rows, **told, **right})
        return
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0] if name != "image"}
    covered_by = ", ".join(f"{p:.1%} of class {label}" for label, p in mean.items())
    facts = {"segmented": f"{counted(len(paths), 'image')}; {covered_by}"}
    if measured is not None:
        each = zip(measured.classes, measured.iou, measured.dice, strict=True)
        told_of = ", ".join(f"class {label} IoU {number(float(i))} Dice {number(float(d))}" for label, i, d in each)
        facts["measured"] = f"{measured.accuracy:.1%} of pixels right; {told_of}"
    facts |= {} if out is None else {"masks": str(out)}
    facts |= {} if pictures is None else {"pictures": str(pictures)}
    lines(facts)


def _write(labels: np.ndarray, model: Classifier, path: Path) -> None:
    """The classes as they are where those are numbers of a byte, else their places."""
    import numpy as np

    from ..data import write_image

    classes = model.classes_
    plain = classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() <= 255
    write_image(path, labels if plain else np.searchsorted(classes, labels))


def _draw(image: np.ndarray, answer: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    from .. import plots

    height, width = image.shape[1:]
    figure = Figure(figsize=(6.4, 6.4 * height / width + 0.7), layout="constrained")  # of no window
    plots.segmentation(image, answer, ax=figure.subplots())
    save_picture(figure, path, 120)


def _measured(model: Classifier, pairs: list[tuple[np.ndarray, np.ndarray]], paths: list[Path]) -> Any:
    import numpy as np

    from ..evaluate import overlap

    for (truth, own), path in zip(pairs, paths, strict=True):
        if truth.shape != own.shape:
            mask, image = (" × ".join(map(str, shape)) for shape in (truth.shape, own.shape))
            raise DataError(f"The mask of {path} has {mask} pixels, but the image has {image}.")
    truth, own = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    return overlap(truth, own, model.classes_.tolist())


def _by_class(measured: Any, name: str) -> dict[str, float]:
    return {str(label): float(value) for label, value in zip(measured.classes, getattr(measured, name), strict=True)}
