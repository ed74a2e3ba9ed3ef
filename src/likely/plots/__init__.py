"""A picture for every answer. Each function draws on `ax` (a new one if None) and returns it; nothing is shown.

Colours can be told apart by colour-blind readers, titles say the finding, and matplotlib's settings stay as they are.
"""

from __future__ import annotations

from .comparison import bias_variance, leaderboard
from .confusions import confusion
from .regression import coefficients, predictions, predictive_band, residuals
from .reliability import calibration, coverage
from .training import history

__all__ = [
    "bias_variance",
    "calibration",
    "coefficients",
    "confusion",
    "coverage",
    "history",
    "leaderboard",
    "predictions",
    "predictive_band",
    "residuals",
]
