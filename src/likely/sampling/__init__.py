"""Draws from distributions, exact and by Markov chains, and what can be said of the chains.

independent draws     inverse_transform, ancestral, rejection, importance
Markov chains         sample(log_prob, initial, method) with MetropolisHastings, Gibbs, HMC, NUTS, Langevin
finite chains         MarkovChain
"""

from __future__ import annotations

from ..core.room import open_room
from .ancestral import ancestral
from .chains import Chains
from .gibbs import Gibbs
from .hmc import HMC
from .importance import WeightedDraws, importance
from .inverse import inverse_cdf, inverse_transform
from .langevin import Langevin
from .markov_chain import MarkovChain
from .metropolis_hastings import MetropolisHastings
from .nuts import NUTS
from .rejection import RejectionDraws, rejection
from .sample import sample
from .sampler import Info, Sampler, State

__all__ = [
    "HMC",
    "NUTS",
    "Chains",
    "Gibbs",
    "Info",
    "Langevin",
    "MarkovChain",
    "MetropolisHastings",
    "RejectionDraws",
    "Sampler",
    "State",
    "WeightedDraws",
    "ancestral",
    "importance",
    "inverse_cdf",
    "inverse_transform",
    "rejection",
    "sample",
]

open_room(__name__, Sampler)
