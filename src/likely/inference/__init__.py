"""How θ is found: from a problem to a posterior."""

from __future__ import annotations

from ..core.callbacks import Epoch
from ..core.checkpoint import Checkpoint
from ..core.room import open_room
from .automatic import automatic
from .game import Game, Player
from .gaussian import GaussianPosterior
from .laplace.posterior import LaplacePosterior
from .latent.em import EM, elbo
from .latent.latent import Latent, LatentFit
from .latent.topics import CollapsedGibbs, VariationalBayes
from .linear.conjugate import BetaBinomial, beta_binomial
from .linear.exact import Exact
from .linear.newton import Newton
from .mcmc.draws import ChainPosterior
from .objective import Conditional, Joint, Objective, RowDensity
from .posterior import Posterior
from .problem import Inference, Problem
from .training.adversarial import AdversarialTraining
from .training.averaging import EMA, SWA, Average
from .training.ensemble import Ensemble
from .training.low_rank import LowRank
from .training.map import MAP, Noise
from .training.mc_dropout import DropoutPosterior, MCDropout
from .training.truncation import Truncation
from .variational.posterior import VariationalPosterior

__all__ = [
    "EM",
    "EMA",
    "MAP",
    "SWA",
    "AdversarialTraining",
    "Average",
    "BetaBinomial",
    "ChainPosterior",
    "Checkpoint",
    "CollapsedGibbs",
    "Conditional",
    "DropoutPosterior",
    "Ensemble",
    "Epoch",
    "Exact",
    "Game",
    "GaussianPosterior",
    "Inference",
    "Joint",
    "LaplacePosterior",
    "Latent",
    "LatentFit",
    "LowRank",
    "MCDropout",
    "Newton",
    "Noise",
    "Objective",
    "Player",
    "Posterior",
    "Problem",
    "RowDensity",
    "Truncation",
    "VariationalBayes",
    "VariationalPosterior",
    "automatic",
    "beta_binomial",
    "elbo",
]

open_room(__name__, Inference)
