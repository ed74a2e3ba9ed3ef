"""How θ is found: from a problem to a posterior."""

from __future__ import annotations

from ..core.room import open_room
from .automatic import automatic
from .checkpoint import Checkpoint
from .conjugate import BetaBinomial, beta_binomial
from .ensemble import Ensemble
from .exact import Exact
from .gaussian import GaussianPosterior
from .map import MAP, Noise
from .mc_dropout import DropoutPosterior, MCDropout
from .newton import Newton
from .posterior import Posterior
from .problem import Inference, Problem
from .train import Epoch

__all__ = [
    "MAP",
    "BetaBinomial",
    "Checkpoint",
    "DropoutPosterior",
    "Ensemble",
    "Epoch",
    "Exact",
    "GaussianPosterior",
    "Inference",
    "MCDropout",
    "Newton",
    "Noise",
    "Posterior",
    "Problem",
    "automatic",
    "beta_binomial",
]

open_room(__name__, Inference)
