"""How easily is a model fooled? Attacks on fitted models, and certificates that none can succeed."""

from __future__ import annotations

from ..core.room import open_room
from ..optim.ascent import FGSM, PGD, Attack
from .attack import Attacked, attack
from .bounds import certify_by_intervals, certify_by_lipschitz, lipschitz
from .carlini_wagner import CarliniWagner
from .certify import Certified, certify
from .deep_fool import DeepFool
from .linear import Linear

__all__ = [
    "FGSM",
    "PGD",
    "Attack",
    "Attacked",
    "CarliniWagner",
    "Certified",
    "DeepFool",
    "Linear",
    "attack",
    "certify",
    "certify_by_intervals",
    "certify_by_lipschitz",
    "lipschitz",
]

open_room(__name__, Attack)
