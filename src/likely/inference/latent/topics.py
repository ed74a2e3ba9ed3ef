"""How the topics of latent Dirichlet allocation are found: by variational Bayes, or by collapsed Gibbs sampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.spec import require
from ..problem import Inference

__all__ = ["CollapsedGibbs", "VariationalBayes"]


class _TopicInference(Inference):
    """A way to find topics: `fit` makes a posterior of a problem, `weights` says how documents read its topics."""

    needs = frozenset({"tokens"})
    random_topics: ClassVar[bool] = False
    """Whether the topics have a distribution of their own, whose uncertainty counts in the bound."""

    def fit(self, problem: Any) -> Any:
        """The topics and the prior of documents, by what the problem can do: `ascend`, `ascend_in_batches`, `walk`."""
        raise NotImplementedError(f"{type(self).__name__} must define fit.")

    def weights(self, components: np.ndarray) -> np.ndarray:
        """The weight of each word in each topic (K, V) for the inference of documents."""
        raise NotImplementedError(f"{type(self).__name__} must define weights.")


class VariationalBayes(_TopicInference):
    """Mean-field q(θ_d) = Dirichlet(γ_d), q(φ_k) = Dirichlet(λ_k), found by coordinate ascent of the bound

        log p(w) ≥ Σ_dv n_dv log Σ_k exp(E[log θ_dk] + E[log φ_kv]) − Σ_d KL(q(θ_d) ‖ p) − Σ_k KL(q(φ_k) ‖ p)

    With `batch_size=None` each iteration reads all documents and the bound never falls; with a number it is stochastic
    variational inference: after each batch, λ moves by (learning_offset + t)^−learning_decay. It ends when an iteration
    (a pass over all documents) gains less than `tol` of the bound, with 0 after `max_iter`. A document is updated at
    most `passes` times in an iteration: if None, 10 times with all documents at once, which leaves it undecided while
    the topics are still rough, and 100 times in a batch, which moves the topics once and for all.

    Under `torchrun` each process infers its part of the documents, with the result of a single one.

    >>> from likely import LatentDirichlet
    >>> X = np.array([[4, 3, 0, 0], [3, 4, 0, 0], [0, 0, 4, 3], [0, 0, 3, 4]])
    >>> model = LatentDirichlet(2, inference=VariationalBayes(batch_size=2, max_iter=20, tol=0.0), random_state=0)
    >>> len(model.fit(X).history_)
    20
    """

    random_topics: ClassVar[bool] = True
    max_iter: int = 100
    batch_size: int | None = None
    tol: float = 1e-4
    passes: int | None = None
    learning_offset: float = 10.0
    learning_decay: float = 0.7

    @classmethod
    def example(cls) -> VariationalBayes:
        """A few iterations."""
        return cls(max_iter=5, tol=0.0)

    def validate(self) -> None:
        """Positive values; a decay for which batches converge."""
        require(self.max_iter > 0, self, "max_iter", "a positive integer")
        require(self.batch_size is None or self.batch_size > 0, self, "batch_size", "a positive integer or None")
        require(self.tol >= 0, self, "tol", "0 or a positive number")
        require(self.passes is None or self.passes > 0, self, "passes", "a positive integer or None")
        require(self.learning_offset >= 0, self, "learning_offset", "0 or a positive number")
        require(0.5 < self.learning_decay <= 1, self, "learning_decay", "above 0.5 and at most 1")

    def fit(self, problem: Any) -> Any:
        """λ by ascent over all documents, or in batches."""
        if self.batch_size is None:
            return problem.ascend(self.max_iter, self.passes or 10, self.tol)
        rate = (self.learning_offset, self.learning_decay)
        return problem.ascend_in_batches(self.max_iter, self.passes_in_batches, self.tol, self.batch_size, *rate)

    @property
    def passes_in_batches(self) -> int:
        """How often a document of a batch is updated at most."""
        return self.passes or 100

    def weights(self, components: np.ndarray) -> np.ndarray:
        """exp E[log φ_kv] = exp(ψ(λ_kv) − ψ(Σ_v λ_kv))."""
        from scipy.special import psi

        return np.exp(psi(components) - psi(components.sum(1, keepdims=True)))


class CollapsedGibbs(_TopicInference):
    """θ and φ integrated out, the topic of each token drawn given all the others:

        p(z_i = k | z_−i, w) ∝ (n_dk + α_k) (n_kw + β) / (n_k + Vβ)

    `sweeps` over all tokens; of those after the first `warmup`, every `thin`-th state counts, and the topics are
    φ̂_kv ∝ β + the average of n_kv. Usually finds better topics than `VariationalBayes`, in more time. Documents are
    inferred given φ̂. Under `torchrun` every process runs the whole chain, from the same seed.

    >>> from likely import LatentDirichlet
    >>> X = np.array([[4, 3, 0, 0], [3, 4, 0, 0], [0, 0, 4, 3], [0, 0, 3, 4]])
    >>> model = LatentDirichlet(2, inference=CollapsedGibbs(sweeps=50, warmup=20), random_state=0).fit(X)
    >>> model.transform(X).round().sum(0)
    array([2., 2.])
    """

    sweeps: int = 500
    warmup: int = 250
    thin: int = 10

    @classmethod
    def example(cls) -> CollapsedGibbs:
        """A few sweeps."""
        return cls(sweeps=20, warmup=10, thin=5)

    def validate(self) -> None:
        """Some sweeps are left after the warmup."""
        require(self.sweeps > 0, self, "sweeps", "a positive integer")
        require(0 <= self.warmup < self.sweeps, self, "warmup", f"from 0 to below sweeps={self.sweeps}")
        require(self.thin > 0, self, "thin", "a positive integer")

    def fit(self, problem: Any) -> Any:
        """φ̂ on the average of a chain."""
        return problem.walk(self.sweeps, self.warmup, self.thin)

    def weights(self, components: np.ndarray) -> np.ndarray:
        """φ̂ itself."""
        return components / components.sum(1, keepdims=True)
