"""`likely detect`: what is where in images; and `likely fit IMAGES --boxes ANNOTATIONS`, which learns it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError, SpecError
from ..core.plural import counted
from .folders import answer_names, asked_images, made
from .options import JsonOption, ModelArgument, check_out, file_name
from .output import lines, number, print_json, save_picture
from .predict import ENDINGS, give, write_table

if TYPE_CHECKING:
    import numpy as np

    from ..models import Detector

__all__ = ["detect", "fit_boxes", "sides_of"]

BLOCK = 64
"""Images that are read and asked about at once."""


def detect(
    model: ModelArgument,
    images: Annotated[
        Path, typer.Argument(metavar="IMAGES", help="An image, or a folder of PNG or JPEG images.", show_default=False)
    ],
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="P", help="How probable an object must be to be told.")
    ] = 0.5,
    overlap: Annotated[
        float, typer.Option("--overlap", metavar="IOU", help="Boxes of a class that overlap by more are one object.")
    ] = 0.5,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the boxes (.csv, .tsv, .parquet).")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="FOLDER", help="Draw each image with its boxes into a folder.")
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            "--boxes", metavar="FILE", help="True boxes (COCO .json, or a folder of VOC .xml): tells the mAP."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the objects in IMAGES by a model that `likely fit IMAGES --boxes FILE` wrote.

    Each object has a class, a probability, a box in the pixels of its image, and how sure every edge is (its standard
    deviation). An image is named by its path in the folder. Without --out, a terminal shows the first objects and a
    pipe gets all of them as CSV.
    """
    import polars as pl

    from .. import load
    from ..models import Detector

    check_out(out, ENDINGS)
    fitted = load(model)
    if not isinstance(fitted, Detector):
        raise DataError(
            f"{model} holds a {type(fitted).__name__}, which detects nothing; fit a detector with "
            "`likely fit IMAGES --boxes ANNOTATIONS`."
        )
    paths, top = asked_images(images)
    names = answer_names(paths, top)
    if pictures is not None:
        made(pictures, "--pictures")
    measured = None if boxes is None else _measured(fitted, boxes, images, overlap)
    rows: list[dict[str, Any]] = []
    for first in range(0, len(paths), BLOCK):
        block = slice(first, first + BLOCK)
        drawn = [None if pictures is None else pictures / name for name in names[block]]
        for path, answer in zip(paths[block], _asked(fitted, paths[block], threshold, overlap, drawn), strict=True):
            rows += [{"image": path.relative_to(top).as_posix(), **row} for row in answer]
    frame = pl.DataFrame(rows, schema=_schema(fitted), orient="row")
    if out is not None:
        write_table(frame, out)
    facts = {"objects": f"{frame.height} in {counted(len(paths), 'image')} ({_counts(frame)})"}
    if measured is not None:
        truth, precision = measured
        part = "" if truth == len(paths) else f", on the {counted(truth, 'image')} that {boxes} tells of"
        facts["measured"] = f"{precision}{part}"
    facts |= {} if pictures is None else {"pictures": str(pictures)}
    if json:
        told = {} if measured is None else {"map": measured[1].value, "map_50": measured[1].at(0.5)}
        print_json({"model": str(model), "images": len(paths), **told, "objects": frame.to_dicts()})
    elif out is not None or pictures is not None or measured is not None:
        lines(facts | ({} if out is None else {"saved": str(out)}))
    else:
        give(frame if sys.stdout.isatty() or frame.height else frame.clear())


def fit_boxes(
    images: Path,
    annotations: Path,
    parts: Mapping[str, str],
    out: Path | None,
    *,
    size: str | None,
    random_state: int,
    json: bool,
) -> None:
    """Fit a `Detector` to the images of a folder and their boxes, save it, and say what it was fitted to."""
    from ..data import read_boxes
    from ..inference import Inference
    from ..models import Detector
    from ..networks import Network
    from ..priors import Prior

    strange = [name for name in parts if name not in ("network", "prior", "inference")]
    if strange:
        raise SpecError(f"--{strange[0]} does not belong to --boxes; a detector has a network, a prior, an inference.")
    out = out or Path(f"{file_name(images.name) or 'images'}-boxes.likely")
    check_out(out)
    if not images.is_dir():
        raise DataError(f"{images} is not a folder of images; --boxes {annotations} says what is in those of a folder.")
    axes: dict[str, Any] = {"network": Network, "prior": Prior, "inference": Inference}
    chosen = {name: axes[name].parse(words) for name, words in parts.items()}
    read = read_boxes(annotations, images, size=sides_of(size))
    model = Detector(**chosen, random_state=random_state, verbose=not json)
    start = time.perf_counter()
    model.fit(read.images, read.boxes, read.labels)
    seconds = time.perf_counter() - start
    score = model.score(read.images, read.boxes, read.labels)
    model.save(out)
    if json:
        classes = [str(name) for name in model.classes_]
        shape = list(read.images.shape[1:])
        print_json(
            {"model": str(out), "images": len(read), "shape": shape, "classes": classes, "seconds": seconds}
            | {"training_log_score": score}
        )
        return
    lines(
        {
            "images": f"{images}: {read}",
            "model": f"network {model.network}, strides {model.strides}, inference {model.inference}",
            "fit": f"{seconds:.2g} s; on the training images the mean log score is {number(score)}",
            "saved": str(out),
            "next": f"likely detect {out} IMAGES --pictures FOLDER",
        }
    )


def sides_of(size: str | None) -> tuple[int, int] | None:
    """Height and width from `96x128`, or `96` for both.

    >>> sides_of("96x128"), sides_of("64"), sides_of(None)
    ((96, 128), (64, 64), None)
    """
    if size is None:
        return None
    sides = re.fullmatch(r"(\d+)(?:[x×,](\d+))?", size.replace(" ", ""))
    if sides is None or int(sides[1]) == 0 or int(sides[2] or 1) == 0:
        raise SpecError(f"--size {size!r}: write HEIGHTxWIDTH in pixels, such as 96x128, or one number for both.")
    return int(sides[1]), int(sides[2] or sides[1])


def _asked(
    model: Detector, paths: list[Path], threshold: float, overlap: float, drawn: list[Path | None]
) -> list[list[dict[str, Any]]]:
    """The objects of each image as rows, in its own pixels; each is drawn where a file for that is given."""
    import numpy as np

    from ..data import read_image
    from ..models.detection.detections import Detections

    channels, height, width = model.in_shape_
    colour: Any = "grey" if channels == 1 else "rgb"
    whole = [read_image(path, colour=colour) for path in paths]
    small = np.stack([read_image(path, colour=colour, size=(height, width)) for path in paths])
    answers = []
    for picture, image, own in zip(drawn, whole, model.detect(small, threshold, overlap), strict=True):
        scale = np.array([image.shape[2] / width, image.shape[1] / height] * 2)
        placed = Detections(own.boxes * scale, own.labels, own.probabilities, own.scales * scale)
        if picture is not None:
            picture.parent.mkdir(parents=True, exist_ok=True)
            _draw(image, placed, model.classes_, picture)
        answers.append(_rows(placed))
    return answers


def _rows(objects: Any) -> list[dict[str, Any]]:
    edges = ("xmin", "ymin", "xmax", "ymax")
    return [
        {"label": label, "probability": float(probability)}
        | dict(zip(edges, box.tolist(), strict=True))
        | {f"{edge}_scale": float(value) for edge, value in zip(edges, scales, strict=True)}
        for box, label, probability, scales in zip(
            objects.boxes, objects.labels.tolist(), objects.probabilities, objects.scales, strict=True
        )
    ]


def _schema(model: Detector) -> dict[str, Any]:
    import polars as pl

    edges = ("xmin", "ymin", "xmax", "ymax")
    label = pl.String if model.classes_.dtype.kind in "UO" else pl.Int64
    numbers = ["probability", *edges, *(f"{edge}_scale" for edge in edges)]
    return {"image": pl.String, "label": label, **dict.fromkeys(numbers, pl.Float64)}


def _counts(frame: Any) -> str:
    counts = frame["label"].value_counts(sort=True).rows() if frame.height else []
    return ", ".join(f"{count} {label}" for label, count in counts) or "none is probable enough"


def _measured(model: Detector, annotations: Path, images: Path, overlap: float) -> tuple[int, Any]:
    """On how many of the images true boxes are given, and the average precision there, at the size the model sees."""
    from ..data import read_boxes
    from ..evaluate import average_precision

    channels, height, width = model.in_shape_
    colour: Any = "grey" if channels == 1 else "rgb"
    names = [str(name) for name in model.classes_]
    read = read_boxes(annotations, images, colour=colour, size=(height, width), classes=names)
    found = model.detect(read.images, 0.01, overlap)
    answers = [(own.boxes, own.labels.astype(str), own.probabilities) for own in found]
    return len(read), average_precision(answers, read.boxes, read.labels, classes=names)


def _draw(image: np.ndarray, objects: Any, classes: np.ndarray, path: Path) -> None:
    from matplotlib.figure import Figure

    from .. import plots

    height, width = image.shape[1:]
    figure = Figure(figsize=(6.4, 6.4 * height / width + 0.7), layout="constrained")  # of no window
    plots.detections(image, objects, classes=classes, ax=figure.subplots())
    save_picture(figure, path, 120)
