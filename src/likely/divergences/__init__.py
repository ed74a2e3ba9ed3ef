"""How far distributions are from one another and how much they leave unknown: KL, JS, entropies, information."""

from __future__ import annotations

from .divergence import cross_entropy, entropy, js, kl
from .estimate import Estimate
from .gaussian import condition, marginal
from .information import conditional_entropy, joint_entropy, mutual_information

__all__ = [
    "Estimate",
    "condition",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "joint_entropy",
    "js",
    "kl",
    "marginal",
    "mutual_information",
]
