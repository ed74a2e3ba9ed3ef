"""How good is it? Metrics, proper scores, calibration, coverage, cross-validation, comparison, bias and variance."""

from __future__ import annotations

from .comparison import Leaderboard, compare
from .decomposition import BiasVariance, bias_variance
from .gap import Gap, generalisation_gap
from .intervals import Coverage, coverage
from .metrics import (
    accuracy,
    brier,
    confusion_matrix,
    f1,
    log_loss,
    mae,
    perplexity,
    precision,
    r2,
    recall,
    rmse,
    roc_auc,
)
from .reliability import PIT, Reliability, calibration
from .scores import crps, log_score, log_scores
from .splitting import split
from .validation import CrossValidation, cross_validate

__all__ = [
    "PIT",
    "BiasVariance",
    "Coverage",
    "CrossValidation",
    "Gap",
    "Leaderboard",
    "Reliability",
    "accuracy",
    "bias_variance",
    "brier",
    "calibration",
    "compare",
    "confusion_matrix",
    "coverage",
    "cross_validate",
    "crps",
    "f1",
    "generalisation_gap",
    "log_loss",
    "log_score",
    "log_scores",
    "mae",
    "perplexity",
    "precision",
    "r2",
    "recall",
    "rmse",
    "roc_auc",
    "split",
]
