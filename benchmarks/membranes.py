"""Membranes between cells (ISBI 2012, slices of 256 × 256): pixels labelled by a U-Net, drawn for the docs.

The first 24 slices train, the last 6 test. Masks are turned and mirrored with their slices, and answers are the mean
over all eight ways to turn and mirror a slice.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from likely import Classifier
from likely.data.augment import Flip, QuarterTurn
from likely.evaluate import overlap
from likely.inference import EMA, MAP
from likely.models.segmentation import segment
from likely.networks import UNet
from likely.optim import Adam, Cosine

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["run"]

TRAIN, EPOCHS = 24, 24
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "membranes.png"


def run(repeats: int = 1) -> list[Result]:
    with np.load(FOLDER / "isbi_membrane_256.npz", allow_pickle=False) as file:
        images = (file["x"].astype(np.float32) / 255)[:, None]
        labels = (file["y"] > 0).astype(int)
    moved, kept = Flip() + QuarterTurn(), EMA(0.98)
    training = MAP(Adam(4e-3), epochs=EPOCHS, batch_size=2, schedule=Cosine(), augment=moved, average=kept)
    start = time.process_time()
    model = Classifier(network=UNet((16, 32, 64, 128), norm="batch"), inference=training, random_state=0)
    model.fit(images[:TRAIN], labels[:TRAIN])
    minutes = (time.process_time() - start) / 60
    truth = labels[TRAIN:]
    answer = segment(model, images[TRAIN:], flips=True)
    found = overlap(truth, np.array(answer.labels))
    draw(images[TRAIN, 0], answer.probabilities[0][..., 0], truth[0])
    membranes, cells = found.iou
    words = (
        f"accuracy {found.accuracy:.4f}, IoU {membranes:.3f} of membranes and {cells:.3f} of cells, "
        f"{minutes:.1f} core-minutes"
    )
    commonest = max(float(np.mean(truth == k)) for k in (0, 1))
    wrong = 1 - found.accuracy
    return [Result("membranes, wrong pixels", "the commonest label", wrong, 1 - commonest, words, True, None, "")]


def draw(image: np.ndarray, membrane: np.ndarray, truth: np.ndarray) -> None:
    """A slice, the probability of membrane, and what an expert drew."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4))
    panels = (
        (image, "slice not seen in training"),
        (membrane, "probability of membrane"),
        (1 - truth, "an expert's label"),
    )
    for ax, (values, title) in zip(axes, panels, strict=True):
        ax.imshow(values, cmap="gray")
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    show(run())
