"""What an inference about topics is given, and what it finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .corpus import Corpus

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
    weight: np.ndarray | None = None  # (n,) how often each document counts

    def ascend(self, max_iter: int, passes: int, tol: float) -> TopicPosterior:
        """Variational Bayes over all documents at once."""
        from .ascent import ascend

        return ascend(self, max_iter, passes, tol)

    def ascend_in_batches(
        self, max_iter: int, passes: int, tol: float, batch_size: int, offset: float, decay: float
    ) -> TopicPosterior:
        """Stochastic variational Bayes."""
        from .ascent import ascend_in_batches

        return ascend_in_batches(self, max_iter, passes, tol, batch_size, offset, decay)

    def walk(self, sweeps: int, warmup: int, thin: int) -> TopicPosterior:
        """Collapsed Gibbs sampling."""
        from .chain import walk

        return walk(self, sweeps, warmup, thin)


class TopicPosterior(NamedTuple):
    """The Dirichlet parameters of each topic over the words, the prior of documents (learned or as given), and the way
    there: the bound of each iteration, or the log joint of some states of a chain. `converged` is None where no rule
    says: with tol=0, and of a chain."""

    components: np.ndarray  # (K, V)
    document_prior: np.ndarray  # (K,)
    trace: list[float]
    converged: bool | None
    iterations: int
