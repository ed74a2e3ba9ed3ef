from __future__ import annotations

import numpy as np
import torch

from likely.data.geometry import overlaps
from likely.models.detection.suppression import leaders


def one_by_one(boxes, labels, overlap):
    """Greedy suppression as a loop."""
    kept, lead = [], []
    for j in range(len(boxes)):
        rivals = [i for i in kept if labels[i] == labels[j] and float(overlaps(boxes[[i]], boxes[[j]])) > overlap]
        lead.append(rivals[0] if rivals else j)
        kept += [] if rivals else [j]
    return lead


def test_all_at_once_is_one_by_one(seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 20, (5, 40, 2))
    boxes = torch.from_numpy(np.concatenate([low, low + rng.uniform(5, 15, (5, 40, 2))], -1))
    labels = torch.from_numpy(rng.integers(2, size=(5, 40)))
    together = leaders(boxes, labels, 0.3)
    assert together.tolist() == [one_by_one(*own, 0.3) for own in zip(boxes, labels, strict=True)]


def test_a_suppressed_box_suppresses_none():
    """a overlaps b, b overlaps c, and a does not overlap c: b goes, and c stays."""
    boxes = torch.tensor([[[0.0, 0.0, 10.0, 1.0], [4.0, 0.0, 14.0, 1.0], [8.0, 0.0, 18.0, 1.0]]])
    assert leaders(boxes, torch.zeros(1, 3, dtype=torch.long), 0.3).tolist() == [[0, 0, 2]]
