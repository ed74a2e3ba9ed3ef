"""Optimisers, schedules, line search and clipping: specs over `torch.optim`."""

from __future__ import annotations

from ..core.room import open_room
from .adaptive import AdaGrad, Adam, AdamW, RMSprop
from .base import Optimizer
from .clip import clip_norm_
from .descent import GradientDescent
from .extra_gradient import ExtraGradient
from .lbfgs import LBFGS
from .line_search import Armijo, LineSearch, armijo
from .schedules import (
    Constant,
    Cosine,
    Exponential,
    InverseSqrt,
    Linear,
    OneCycle,
    Schedule,
    StepDecay,
)
from .sgd import SGD, HeavyBall, Nesterov

__all__ = [
    "LBFGS",
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Armijo",
    "Constant",
    "Cosine",
    "Exponential",
    "ExtraGradient",
    "GradientDescent",
    "HeavyBall",
    "InverseSqrt",
    "LineSearch",
    "Linear",
    "Nesterov",
    "OneCycle",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "StepDecay",
    "armijo",
    "clip_norm_",
]

open_room(__name__, Optimizer)
