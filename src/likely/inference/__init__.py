"""How θ is found: from a problem to a posterior."""

from __future__ import annotations

from ..core.room import open_room
from .automatic import automatic
from .checkpoint import Checkpoint
from .conjugate import BetaBinomial, beta_binomial
from .draws import ChainPosterior
from .em import EM, elbo
from .ensemble import Ensemble
from .exact import Exact
from .gaussian import GaussianPosterior
from .laplace_posterior import LaplacePosterior
from .latent import Latent, LatentFit, LatentInference
from .map import MAP, Noise
from .mc_dropout import DropoutPosterior, MCDropout
from .newton import Newton
from .posterior import Posterior
from .problem import Inference, Problem
from .topics import CollapsedGibbs, TopicInference, VariationalBayes
from .train import Epoch
from .truncation import Truncation
from .variational import VariationalPosterior

__all__ = [
    "EM",
    "MAP",
    "BetaBinomial",
    "ChainPosterior",
    "Checkpoint",
    "CollapsedGibbs",
    "DropoutPosterior",
    "Ensemble",
    "Epoch",
    "Exact",
    "GaussianPosterior",
    "Inference",
    "LaplacePosterior",
    "Latent",
    "LatentFit",
    "LatentInference",
    "MCDropout",
    "Newton",
    "Noise",
    "Posterior",
    "Problem",
    "TopicInference",
    "Truncation",
    "VariationalBayes",
    "VariationalPosterior",
    "automatic",
    "beta_binomial",
    "elbo",
]

open_room(__name__, Inference)
