"""A picture for every answer. Each function draws on `ax` (a new one if None) and returns it; nothing is shown.

Colours can be told apart by colour-blind readers, titles say the finding, and matplotlib's settings stay as they are.
"""

from __future__ import annotations

from .chains import rank, trace
from .comparison import bias_variance, leaderboard
from .components import components
from .confusions import confusion
from .forecasts import forecast
from .mixtures import mixture
from .network_graph import network_graph
from .regression import coefficients, predictions, predictive_band, residuals
from .reliability import calibration, coverage
from .states import state_path
from .topics import topics
from .training import history

__all__ = [
    "bias_variance",
    "calibration",
    "coefficients",
    "components",
    "confusion",
    "coverage",
    "forecast",
    "history",
    "leaderboard",
    "mixture",
    "network_graph",
    "predictions",
    "predictive_band",
    "rank",
    "residuals",
    "state_path",
    "topics",
    "trace",
]
