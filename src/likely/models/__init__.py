"""What users fit."""

from __future__ import annotations

from .classifier import Classifier
from .perceptron import Perceptron
from .regressor import Regressor

__all__ = ["Classifier", "Perceptron", "Regressor"]
