"""What an inference about topics is given, and what it finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .topic_corpus import Corpus

__all__ = ["TopicPosterior", "TopicProblem"]


class TopicProblem(NamedTuple):
    """Documents, the number of topics, and the priors θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(β, …, β)."""

    corpus: Corpus
    topics: int
    document_prior: np.ndarray  # (K,) α
    topic_prior: float  # β
    learn_prior: bool
    seed: int
    verbose: bool


class TopicPosterior(NamedTuple):
    """The Dirichlet parameters of each topic over the words, the prior of documents (learned or as given), and the way
    there: the bound of each iteration, or the log joint of some states of a chain."""

    components: np.ndarray  # (K, V)
    document_prior: np.ndarray  # (K,)
    trace: list[float]
    converged: bool
    iterations: int
