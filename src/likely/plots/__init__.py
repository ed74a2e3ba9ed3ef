"""A picture for every answer. Each function draws on `ax` (a new one if None) and returns it; nothing is shown.

Colours can be told apart by colour-blind readers, titles say the finding, and matplotlib's settings stay as they are.
"""

from __future__ import annotations

from .attacks import perturbation, robustness
from .attentions import attention
from .attributions import attribution
from .capacities import capacity
from .chains import rank, trace
from .comparison import bias_variance, leaderboard
from .components import components
from .confusions import confusion
from .convergences import convergence
from .descent import double_descent
from .detections import detections, precision_recall
from .forecasts import forecast
from .futures import future
from .generated import image_grid, latent_map, pairs, trajectory
from .gradients import gradients, shattering
from .implicit import implicit_regularisation
from .inspection import importance, partial_dependence
from .matrices import convolution, derivatives
from .mixtures import mixture
from .network_graph import network_graph
from .processes import process
from .receptive import receptive
from .refinements import refinement
from .regions import breakpoints, regions
from .regression import coefficients, predictions, predictive_band, residuals
from .reliability import calibration, coverage
from .residual_checks import qq, quantile_residuals
from .segments import segmentation
from .spectra import spectrum
from .states import state_path
from .topics import topics
from .training import history

__all__ = [
    "attention",
    "attribution",
    "bias_variance",
    "breakpoints",
    "calibration",
    "capacity",
    "coefficients",
    "components",
    "confusion",
    "convergence",
    "convolution",
    "coverage",
    "derivatives",
    "detections",
    "double_descent",
    "forecast",
    "future",
    "gradients",
    "history",
    "image_grid",
    "implicit_regularisation",
    "importance",
    "latent_map",
    "leaderboard",
    "mixture",
    "network_graph",
    "pairs",
    "partial_dependence",
    "perturbation",
    "precision_recall",
    "predictions",
    "predictive_band",
    "process",
    "qq",
    "quantile_residuals",
    "rank",
    "receptive",
    "refinement",
    "regions",
    "residuals",
    "robustness",
    "segmentation",
    "shattering",
    "spectrum",
    "state_path",
    "topics",
    "trace",
    "trajectory",
]
