"""Blood cells (BCCD, photographs of 96 × 128 pixels, three classes): a detector against what repositories report.

205 photographs train, 87 chose the network and its training, 72 test: the published split. The photographs here are
five times smaller along each side than those that others train on.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from likely import Detector, plots
from likely.data.augment import Crop, Flip
from likely.data.geometry import overlaps
from likely.evaluate import AveragePrecision, average_precision
from likely.inference import EMA, MAP
from likely.models.detection.detections import Detections
from likely.networks import UNet
from likely.optim import AdamW, Cosine

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["Photographs", "photographs", "run"]

CLASSES = np.array(["RBC", "WBC", "Platelets"])
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "cells.png"
REPORTED = 0.906
"""mAP@0.5 of a YOLOv7 that was trained on other photographs before, at 416 × 416 pixels, on 73 photographs of another
split: what the repository AqsaRasheed/Complete-Blood-Count-CBC- reports (Platelets 0.876, RBC 0.859, WBC 0.983)."""

Photographs = tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]


def photographs() -> list[Photographs]:
    """Images (n, 3, 96, 128), boxes and labels, to train on, to choose by and to test on."""
    with np.load(FOLDER / "bccd_cells_96x128.npz", allow_pickle=False) as file:
        x, split = file["x"].transpose(0, 3, 1, 2), file["split"]
        boxes = np.split(np.clip(file["boxes"], 0, [128, 96, 128, 96]), file["box_ptr"][1:-1])
        labels = np.split(CLASSES[file["box_class"]], file["box_ptr"][1:-1])
    places = [np.flatnonzero(split == part) for part in range(3)]
    return [(x[own], [boxes[i] for i in own], [labels[i] for i in own]) for own in places]


def detector() -> Detector:
    """As chosen by the photographs that do not test."""
    augment = Flip() + Flip(direction="vertical") + Crop(8, "reflect")
    options = {"schedule": Cosine(), "clip_norm": 200.0, "average": EMA(0.99), "augment": augment}
    inference = MAP(AdamW(3e-3), epochs=50, batch_size=8, **options)
    return Detector(UNet((24, 48, 96), patch=2), strides=(4, 8), inference=inference, random_state=0)


def run(repeats: int = 1) -> list[Result]:
    train, _, test = photographs()
    start = time.process_time()
    model = detector().fit(*train)
    return report(model, (time.process_time() - start) / 60, test)


def report(model: Detector, minutes: float, test: Photographs) -> list[Result]:
    """What a model that took so many minutes of one core makes of the photographs that test."""
    start = time.process_time()
    answers = model.detect(test[0], threshold=0.01)
    seconds = (time.process_time() - start) / len(test[0])
    measured = average_precision(answers, test[1], test[2])
    draw(test[0][0], model.detect(test[0][:1])[0], measured)
    first = measured.by_class[0]
    own = ", ".join(f"{label} {value:.3f}" for label, value in zip(measured.classes, first, strict=True))
    words = (
        f"mAP@0.5 {measured.at(0.5):.3f} ({own}), mAP@0.5:0.95 {measured.value:.3f}, at 96 × 128 pixels; "
        f"{100 * inside(answers, test):.0f} % of edges lie within their standard deviation (of a Laplace: 76 %)"
    )
    peer = "YOLOv7, pretrained, at 416 × 416, as reported"
    quality = f"205 photographs, {model.inference.epochs} epochs, CPU time of one core"
    return [
        Result("bccd, 1 − mAP@0.5", peer, 1 - measured.at(0.5), 1 - REPORTED, words, True, None, ""),
        Result("bccd, training", "20 minutes", minutes, 20.0, quality, True, 1.0, "min"),
        Result("bccd, an image", "5 images per second", seconds, 0.2, "detect, CPU time of one core", True, 1.0, "s"),
    ]


def inside(answers: list[Detections], test: Photographs) -> float:
    """The fraction of edges, of objects that are right, that lie within their standard deviation of the true ones."""
    hits = []
    for own, boxes, labels in zip(answers, *test[1:], strict=True):
        probable = own.above(0.3)
        iou = overlaps(torch.from_numpy(probable.boxes), torch.from_numpy(boxes).double()).numpy()
        iou = iou * (probable.labels[:, None] == labels)
        right = iou.max(1, initial=0.0) > 0.5
        off = np.abs(probable.boxes - boxes[iou.argmax(1)])[right]
        hits.append(off < probable.scales[right])
    return float(np.concatenate(hits).mean())


def draw(image: np.ndarray, objects: Detections, measured: AveragePrecision) -> None:
    """A photograph with what is detected in it, and the curves of precision."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained", width_ratios=(1.35, 1))
    plots.detections(image, objects, classes=CLASSES, ax=axes[0])
    plots.precision_recall(measured, ax=axes[1])
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    show(run())
