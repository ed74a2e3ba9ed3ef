"""Membranes between cells (ISBI 2012, slices of 256 × 256): pixels labelled by a U-Net, drawn for the docs.

The first 24 slices train, the last 6 test.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from likely import Classifier
from likely.inference import MAP
from likely.networks import UNet
from likely.optim import Adam, Cosine

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["run"]

TRAIN, EPOCHS = 24, 30
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "membranes.png"


def run(repeats: int = 1) -> list[Result]:
    path = FOLDER / "isbi_membrane_256.npz"
    with np.load(path, allow_pickle=False) as file:
        images = (file["x"].astype(np.float32) / 255)[:, None]
        labels = (file["y"] > 0).astype(int)
    images = (images - images[:TRAIN].mean()) / images[:TRAIN].std()
    inference = MAP(Adam(3e-3), epochs=EPOCHS, batch_size=2, schedule=Cosine())
    start = time.perf_counter()
    model = Classifier(network=UNet((16, 32, 64), norm="batch"), inference=inference, random_state=0)
    model.fit(images[:TRAIN], labels[:TRAIN])
    minutes = (time.perf_counter() - start) / 60
    truth = labels[TRAIN:]
    membrane = np.concatenate([model.predict_proba(images[i : i + 1])[..., 0] for i in range(TRAIN, len(images))])
    predicted = (membrane < 0.5).astype(int)
    accuracy = float(np.mean(predicted == truth))
    overlaps = [np.sum((predicted == k) & (truth == k)) / np.sum((predicted == k) | (truth == k)) for k in (0, 1)]
    draw(images[TRAIN, 0], membrane[0], truth[0])
    words = (
        f"accuracy {accuracy:.4f}, IoU {overlaps[0]:.3f} of membranes and {overlaps[1]:.3f} of cells, {minutes:.1f} min"
    )
    commonest = max(float(np.mean(truth == k)) for k in (0, 1))
    return [
        Result("membranes, wrong pixels", "the commonest label", 1 - accuracy, 1 - commonest, words, True, None, "")
    ]


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
