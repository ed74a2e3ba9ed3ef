"""Emissions: K distributions of one row, and how each is fitted to weighted rows. Mixtures, hidden Markov models and
naive Bayes are made of them."""

from __future__ import annotations

from .base import Emission
from .columns import Columns
from .gaussian import GaussianEmission
from .part import Part
from .starts import features, first_weights

__all__ = ["Columns", "Emission", "GaussianEmission", "Part", "features", "first_weights"]
