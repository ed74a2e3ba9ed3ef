"""Generative models: distributions of rows with a network inside, and the specs that they are made of."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .critic_penalties import Clip, Gradient, Spectral
    from .energy_model import RBM
    from .info_codes import Codes
    from .negatives import CD, NCE, PCD, Langevin
    from .samplers import DDIM, DDPM, Heun
    from .schedules import Cosine, Exploding, Learned, Linear

__all__ = [
    "CD",
    "DDIM",
    "DDPM",
    "NCE",
    "PCD",
    "RBM",
    "Clip",
    "Codes",
    "Cosine",
    "Exploding",
    "Gradient",
    "Heun",
    "Langevin",
    "Learned",
    "Linear",
    "Spectral",
]

_FILES = {
    "Codes": "info_codes",
    "RBM": "energy_model",
    **dict.fromkeys(("CD", "NCE", "PCD", "Langevin"), "negatives"),
    **dict.fromkeys(("Clip", "Gradient", "Spectral"), "critic_penalties"),
    **dict.fromkeys(("DDIM", "DDPM", "Heun"), "samplers"),
    **dict.fromkeys(("Cosine", "Exploding", "Learned", "Linear"), "schedules"),
}


def __getattr__(name: str) -> Any:
    """A spec, on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
