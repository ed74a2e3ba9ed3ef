"""Membranes between cells (ISBI 2012, slices of 256 × 256): pixels labelled by a U-Net, drawn for the docs.

The first 24 slices train, the last 6 test. Training is on overlapping tiles of 128 × 128, which give four times as many
steps in the same time as whole slices, turned and mirrored with their masks. The network answers for slices of any
size, by the mean over all eight ways to turn and mirror a slice. Pixels are not weighted: the fraction of them that is
right is what is measured, and borders or rare classes that count for more would make that smaller. Tiles, width and
length were chosen by the last 4 of the 24 slices.
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

TRAIN, EPOCHS = 24, 90
SIDE, STRIDE = 128, 64
NETWORK = UNet((16, 32, 64, 128), norm="batch")
MOVED = Flip() + QuarterTurn()
TARGET = 0.935
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "membranes.png"


def run(repeats: int = 1) -> list[Result]:
    images, labels = slices()
    start = time.process_time()
    model = fitted(images[:TRAIN], labels[:TRAIN])
    minutes = (time.process_time() - start) / 60
    truth = labels[TRAIN:]
    answer = segment(model, images[TRAIN:], flips=True)
    measured = overlap(truth, np.array(answer.labels))
    draw(images[TRAIN, 0], answer.probabilities[0][..., 0], truth[0])
    membranes, cells = measured.iou
    words = (
        f"accuracy {measured.accuracy:.4f}, IoU {membranes:.3f} of membranes and {cells:.3f} of cells, "
        f"{minutes:.1f} core-minutes"
    )
    commonest = max(float(np.mean(truth == k)) for k in (0, 1))
    wrong, name = 1 - measured.accuracy, "membranes, wrong pixels"
    return [
        Result(name, "the commonest label", wrong, 1 - commonest, words, True, None, ""),
        Result(name, "target", wrong, 1 - TARGET, words, True, 1.0, ""),
    ]


def slices() -> tuple[np.ndarray, np.ndarray]:
    """Slices (30, 1, 256, 256) between 0 and 1, and which of their pixels are of cells."""
    with np.load(FOLDER / "isbi_membrane_256.npz", allow_pickle=False) as file:
        return (file["x"].astype(np.float32) / 255)[:, None], (file["y"] > 0).astype(int)


def fitted(images: np.ndarray, labels: np.ndarray, epochs: int = EPOCHS) -> Classifier:
    """The network after so many epochs."""
    training = MAP(Adam(3e-3), epochs, batch_size=2, schedule=Cosine(), augment=MOVED, average=EMA(0.995))
    return Classifier(network=NETWORK, inference=training, random_state=0).fit(tiles(images), tiles(labels))


def tiles(slices: np.ndarray) -> np.ndarray:
    """Overlapping squares (n, …, 128, 128) of slices (…, 256, 256)."""
    starts = range(0, slices.shape[-1] - SIDE + 1, STRIDE)
    return np.concatenate([slices[..., i : i + SIDE, j : j + SIDE] for i in starts for j in starts])


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
