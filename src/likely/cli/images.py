"""Images on the command line: folders of them by class, or with masks; fitted, told apart and judged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import DataError, SpecError
from .detect import sides_of
from .options import check_out, file_name
from .output import lines, number, print_json

if TYPE_CHECKING:
    import polars as pl

    from ..data import Images
    from ..models import Classifier

__all__ = [
    "fit_images",
    "image_measures",
    "image_predictions",
    "is_images",
    "load_classifier",
    "read_as_fitted",
    "tell_measures",
]

NETWORKS = {False: "conv_net()", True: "u_net()"}
"""What sees images if no network is given: to tell them apart, and to tell their pixels apart."""


def is_images(path: Path) -> bool:
    """Whether this is an image, or a folder with images and no texts in it."""
    from ..data.images import ENDINGS

    if not path.is_dir():
        return path.suffix.lower() in ENDINGS
    endings = {entry.suffix.lower() for entry in path.rglob("*") if entry.is_file()}
    return bool(endings & set(ENDINGS)) and ".txt" not in endings


def fit_images(
    folder: Path,
    masks: Path | None,
    parts: Mapping[str, str],
    out: Path | None,
    *,
    size: str | None,
    random_state: int,
    json: bool,
) -> None:
    """Fit a `Classifier` to images by class, or to images and the masks in another folder, and save it."""
    from ..data import read_images, read_masks
    from ..inference import Inference
    from ..likelihoods import Likelihood
    from ..models import Classifier
    from ..networks import Network
    from ..priors import Prior

    if "tokens" in parts:
        raise SpecError(f"--tokens {parts['tokens']!r} cuts texts, and {folder} has images.")
    out = out or Path(f"{file_name(folder.name) or 'images'}-{'class' if masks is None else 'masks'}.likely")
    check_out(out)
    axes: dict[str, Any] = {"likelihood": Likelihood, "network": Network, "prior": Prior, "inference": Inference}
    words = {"network": NETWORKS[masks is not None], **parts}
    chosen = {name: axes[name].parse(text) for name, text in words.items()}
    sides = sides_of(size)
    images = read_images(folder, size=sides, labelled=masks is None)
    if masks is None and images.labels is None:
        raise DataError(
            f"{folder} has images but no folders in it, which would be their classes; --masks FOLDER gives each pixel "
            "a class, --boxes FILE says where objects are."
        )
    targets = images.labels if masks is None else read_masks(masks, images, size=sides)
    model = Classifier(**chosen, random_state=random_state, verbose=not json)
    start = time.perf_counter()
    model.fit(images.images, targets)
    seconds = time.perf_counter() - start
    accuracy = model.score(images.images, targets)
    model.save(out)
    if json:
        shape, classes = list(images.images.shape[1:]), [str(label) for label in model.classes_]
        told = {"model": str(out), "images": len(images), "shape": shape, "classes": classes, "seconds": seconds}
        print_json(told | {"training_score": accuracy})
        return
    what, also = ("images", "") if masks is None else ("pixels", f", and masks of {len(model.classes_)} classes")
    verb = "predict" if masks is None else "segment"
    lines(
        {
            "images": f"{folder}: {images}{also}",
            "model": f"network {model.network}, prior {model.prior}, inference {model.inference}",
            "fit": f"{seconds:.2g} s; {accuracy:.1%} of the training {what} are right",
            "saved": str(out),
            "next": f"likely {verb} {out} NEW_IMAGES",
        }
    )


def load_classifier(path: Path, *, pixels: bool) -> Classifier:
    """The model of images in a file, of whole ones or of their `pixels`."""
    from .. import load
    from ..models import Classifier, Detector

    model = load(path)
    if isinstance(model, Detector):
        raise DataError(
            f"{path} holds a Detector, which says where objects are; `likely detect {path} IMAGES` tells it."
        )
    if not isinstance(model, Classifier) or len(model.in_shape_) != 3:
        raise DataError(f"{path} holds a {type(model).__name__} that was not fitted on images.")
    if pixels and not model.positions_:
        raise DataError(f"{path} has one answer for each image; `likely predict {path} IMAGES` tells it.")
    if not pixels and model.positions_:
        raise DataError(f"{path} has an answer for each pixel; `likely segment {path} IMAGES` tells them.")
    return model


def read_as_fitted(model: Classifier, path: Path, *, labelled: bool = True) -> Images:
    """An image or all of a folder, in the channels and at the size that a model was fitted on."""
    import numpy as np

    from ..data import Images, read_image, read_images

    channels, height, width = model.in_shape_
    colour: Any = "grey" if channels == 1 else "rgb"
    if path.is_dir():
        return read_images(path, colour=colour, size=(height, width), labelled=labelled)
    return Images(np.stack([read_image(path, colour=colour, size=(height, width))]), None, (path,))


def image_predictions(path: Path, images: Path) -> pl.DataFrame:
    """The class of each image, and the probability of each class."""
    import polars as pl

    model = load_classifier(path, pixels=False)
    read = read_as_fitted(model, images, labelled=False)
    top = images if images.is_dir() else images.parent
    probability = model.predict_proba(read.images)
    columns: dict[str, Any] = {"image": [own.relative_to(top).as_posix() for own in read.paths]}
    columns["class_predicted"] = model.classes_[probability.argmax(1)]
    columns |= {f"class_p_{label}": probability[:, i] for i, label in enumerate(model.classes_)}
    return pl.DataFrame(columns)


def image_measures(path: Path, folder: Path) -> dict[str, tuple[Any, str]]:
    """How good a model is on a folder of images by class."""
    import numpy as np

    model = load_classifier(path, pixels=False)
    read = read_as_fitted(model, folder)
    if read.labels is None:
        raise DataError(f"{folder} has no folders in it, which would be the classes of the images to judge by.")
    known = np.isin(read.labels, model.classes_)
    if not known.any():
        raise DataError(
            f"{folder}: no image is of a class that the model knows ({', '.join(map(str, model.classes_))})."
        )
    scores = model.log_prob(read.images[known], read.labels[known])
    right = model.predict(read.images) == read.labels
    told: dict[str, tuple[Any, str]] = {
        "images": (len(read), "in the folder"),
        "log_score": (float(scores.mean()), "mean log p(class | image), of classes that the model knows"),
        "accuracy": (float(right.mean()), "fraction of images whose most probable class is right"),
    }
    strange = sorted(set(read.labels[~known].tolist()))
    if strange:
        meaning = f"of classes that training did not show ({', '.join(strange)}): none of them can be right"
        told["unknown"] = (int((~known).sum()), meaning)
    return told


def tell_measures(path: Path, images: Path, told: dict[str, tuple[Any, str]], *, json: bool) -> None:
    """Print measures."""
    from .output import print_table

    if json:
        print_json({"model": str(path), "images": str(images)} | {name: value for name, (value, _) in told.items()})
        return
    rows = [(name, number(value), meaning) for name, (value, meaning) in told.items()]
    print_table(f"{path} on {images}", ["measure", "value", "meaning"], rows)
