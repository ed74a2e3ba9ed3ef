"""How good is it? Metrics, proper scores, calibration, coverage, cross-validation, comparison, generated rows."""

from __future__ import annotations

from .comparison import Leaderboard, compare
from .decomposition import BiasVariance, bias_variance
from .detections import AveragePrecision, average_precision
from .entities import entities, entity_f1
from .gap import Gap, generalisation_gap
from .generated import (
    ClosestRecord,
    Discrepancy,
    Fidelity,
    Modes,
    TwoSample,
    closest_record,
    fidelity,
    frechet_distance,
    inception_score,
    mmd,
    modes,
    two_sample,
)
from .intervals import Coverage, coverage
from .likelihood_ratio import LikelihoodRatio, likelihood_ratio_test
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
from .overlaps import Overlap, dice, dice_threshold, iou, overlap
from .reliability import PIT, Reliability, calibration
from .residuals import QuantileResiduals, quantile_residuals
from .robustness import Robustness, robustness
from .scores import crps, log_score, log_scores
from .splitting import split
from .validation import CrossValidation, cross_validate

__all__ = [
    "PIT",
    "AveragePrecision",
    "BiasVariance",
    "ClosestRecord",
    "Coverage",
    "CrossValidation",
    "Discrepancy",
    "Fidelity",
    "Gap",
    "Leaderboard",
    "LikelihoodRatio",
    "Modes",
    "Overlap",
    "QuantileResiduals",
    "Reliability",
    "Robustness",
    "TwoSample",
    "accuracy",
    "average_precision",
    "bias_variance",
    "brier",
    "calibration",
    "closest_record",
    "compare",
    "confusion_matrix",
    "coverage",
    "cross_validate",
    "crps",
    "dice",
    "dice_threshold",
    "entities",
    "entity_f1",
    "f1",
    "fidelity",
    "frechet_distance",
    "generalisation_gap",
    "inception_score",
    "iou",
    "likelihood_ratio_test",
    "log_loss",
    "log_score",
    "log_scores",
    "mae",
    "mmd",
    "modes",
    "overlap",
    "perplexity",
    "precision",
    "quantile_residuals",
    "r2",
    "recall",
    "rmse",
    "robustness",
    "roc_auc",
    "split",
    "two_sample",
]
