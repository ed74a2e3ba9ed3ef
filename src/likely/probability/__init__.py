"""How far distributions are from one another and how much they leave unknown: KL, JS, Wasserstein, entropies."""

from __future__ import annotations

from .divergence import cross_entropy, entropy, js, kl
from .estimate import Estimate
from .gaussian import condition, marginal
from .information import conditional_entropy, joint_entropy, mutual_information
from .transform import change_of_variables, log_det
from .wasserstein import wasserstein

__all__ = [
    "Estimate",
    "change_of_variables",
    "condition",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "joint_entropy",
    "js",
    "kl",
    "log_det",
    "marginal",
    "mutual_information",
    "wasserstein",
]
