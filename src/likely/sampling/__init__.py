"""Draws from distributions, exact and by Markov chains, and what can be said of the chains.

independent draws     inverse_transform, ancestral, rejection, importance
Markov chains         sample(log_prob, initial, method) with MetropolisHastings, Gibbs
finite chains         MarkovChain
"""

from __future__ import annotations

from ..core.room import open_room
from .ancestral import ancestral
from .chains import Chains
from .gibbs import Gibbs
from .importance import WeightedDraws, importance
from .inverse import inverse_cdf, inverse_transform
from .markov_chain import MarkovChain
from .metropolis_hastings import MetropolisHastings
from .rejection import RejectionDraws, rejection
from .sample import sample
from .sampler import Info, Sampler, State

__all__ = [
    "Chains",
    "Gibbs",
    "Info",
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
