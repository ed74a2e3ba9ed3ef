"""What users fit."""

from __future__ import annotations

from .classifier import Classifier
from .regressor import Regressor

__all__ = ["Classifier", "Regressor"]
