"""Forecasting: the future of a series given its past, by any likelihood and any network, or by classical dynamics."""

from __future__ import annotations

from .dynamics import Dynamics, Naive, SeasonalNaive
from .smoothing import ExponentialSmoothing

__all__ = ["Dynamics", "ExponentialSmoothing", "Naive", "SeasonalNaive"]
