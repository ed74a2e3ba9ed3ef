"""Augmentation: training rows changed at random in ways that leave their targets valid, anew in every batch.

Each is a tensor program on a whole batch of images (n, c, h, w) or signals (n, c, t) or (n, t), drawn from torch's
generator, which training seeds. `MAP(augment=Flip() + Crop(2))` uses two, one after the other. Without strength (a
probability, a reach, a size of 0) each leaves rows as they are. Where each pixel has a target of its own, as in a mask,
what moves the pixels moves their targets and weights with them; what comes in from outside has weight 0.
"""

from __future__ import annotations

from .base import Augment, Compose
from .moving import Crop, Elastic, Flip, QuarterTurn, Rotate, Shift
from .values import Binarise, Cutout, Jitter, Mixup

__all__ = [
    "Augment",
    "Binarise",
    "Compose",
    "Crop",
    "Cutout",
    "Elastic",
    "Flip",
    "Jitter",
    "Mixup",
    "QuarterTurn",
    "Rotate",
    "Shift",
]
