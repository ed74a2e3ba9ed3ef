"""The modules networks are made of: plain `torch.nn.Module`s and functions, usable without the rest of Likely."""

from __future__ import annotations

from .activation import ACTIVATIONS, Erf, Sine, activation, gain
from .init import INITS, glorot, he, he_average, initialise, lecun, orthogonal
from .norm import NORMS, BatchNorm, LayerNorm, ReferenceBatch, VirtualBatchNorm, WeightNorm, norm
from .residual import Concatenate, Residual, ZeroResidual

__all__ = [
    "ACTIVATIONS",
    "INITS",
    "NORMS",
    "BatchNorm",
    "Concatenate",
    "Erf",
    "LayerNorm",
    "ReferenceBatch",
    "Residual",
    "Sine",
    "VirtualBatchNorm",
    "WeightNorm",
    "ZeroResidual",
    "activation",
    "gain",
    "glorot",
    "he",
    "he_average",
    "initialise",
    "lecun",
    "norm",
    "orthogonal",
]
