"""Variational Bayes for topics: q(θ_d) = Dirichlet(γ_d), q(φ_k) = Dirichlet(λ_k), by coordinate ascent of the bound.

    λ_kv = β + Σ_d n_dv r_dvk,   r_dvk ∝ exp(E[log θ_dk] + E[log φ_kv])          (all documents at once)
    λ ← (1 − ρ_t) λ + ρ_t (β + D/|B| Σ_{d∈B} n_dv r_dvk),   ρ_t = (offset + t)^−decay      (batches B of D documents)

Of several processes each infers its part of the documents; the sums over documents are added up.
"""

from __future__ import annotations

import numpy as np
import torch

from ...core import distributed
from ...core.doors import check_indices, check_offsets, check_sizes
from ...core.interrupt import blocks
from ...core.progress import progress
from .corpus import Corpus
from .lanes import padded
from .prior import prior_of_log_theta
from .problem import TopicPosterior, TopicProblem
from .variational import (
    document_statistics,
    expected_weights,
    infer_documents,
    sum_log_theta,
    topic_bound,
)

__all__ = ["Documents", "Topics", "ascend", "ascend_in_batches", "infer", "start", "step"]

INNER_TOL = 1e-3
"""Mean change of γ below which a document is left for this round: other documents will move the topics more."""
BLOCK = 1 << 22
"""Products of a weight and a belief that are formed for one pass over the documents of a call: part of a second."""


class Topics:
    """The state of the ascent: λ by word (V, K padded), α, and the steps taken in batches."""

    def __init__(self, components: np.ndarray, document_prior: np.ndarray, topic_prior: float, steps: int = 0) -> None:
        self.size = components.shape[0]
        self.components = padded(np.ascontiguousarray(components.T), 1.0)
        self.weights = np.empty_like(self.components)
        self.document_prior = document_prior
        self.topic_prior = topic_prior
        self.steps = steps

    def expect(self) -> None:
        """Set the weights to exp E[log φ]."""
        expected_weights(self.components, self.weights, self.size)

    def posterior(self, trace: list[float], converged: bool | None, iterations: int) -> TopicPosterior:
        """What was learned."""
        components = np.ascontiguousarray(self.components[:, : self.size].T)
        return TopicPosterior(components, self.document_prior, trace, converged, iterations)


def start(topics: int, words: int, random: np.random.Generator) -> np.ndarray:
    """Components (K, V) that are all alike but for a little noise."""
    return random.gamma(100.0, 0.01, (topics, words))


class Documents:
    """Some documents and what is believed of them; `fresh` beliefs are the same for every topic."""

    def __init__(self, corpus: Corpus, topics: Topics, weight: np.ndarray | None = None) -> None:
        check_topics("Documents", corpus, topics.components[:, : topics.size], topics.document_prior)
        self.corpus, self.topics = corpus, topics
        self.weight = np.ones(corpus.documents) if weight is None else weight  # how often each document counts
        self.gamma = np.ones((corpus.documents, topics.components.shape[1]))
        self.ratios = np.empty(len(corpus.words))
        self.bounds = np.empty(corpus.documents)

    def infer(self, passes: int, tol: float) -> float:
        """Improve γ given the topics; the bound, over the documents of all processes."""
        prior = padded(self.topics.document_prior, 1.0)
        told = (self.gamma, self.ratios, self.bounds)
        _infer(self.corpus, self.topics.weights, prior, told, self.topics.size, passes, tol)
        total = torch.tensor(self.weight @ self.bounds, dtype=torch.float64)
        distributed.sum_(total)
        return float(total)

    def expected_counts(self) -> np.ndarray:
        """E[n_vk] (V, K padded) over the documents of all processes."""
        statistics = np.zeros_like(self.topics.components)
        ratios = self.ratios * np.repeat(self.weight, np.diff(self.corpus.starts))
        for first, last in blocks(np.diff(self.corpus.starts), BLOCK / self.gamma.shape[1]):
            starts, gamma = self.corpus.starts[first : last + 1], self.gamma[first:last]
            document_statistics(starts, self.corpus.words, ratios, gamma, statistics)
        distributed.sum_(torch.from_numpy(statistics))
        statistics *= self.topics.weights
        return statistics

    def best_prior(self) -> np.ndarray:
        """The α of largest bound, given γ."""
        total, documents = sum_log_theta(self.corpus.starts, self.gamma, self.weight, self.topics.size)
        summed = torch.from_numpy(np.append(total, documents))
        distributed.sum_(summed)
        mean = summed.numpy()[:-1] / max(float(summed[-1]), 1.0)
        return prior_of_log_theta(mean, self.topics.document_prior) if summed[-1] else self.topics.document_prior


def ascend(problem: TopicProblem, max_iter: int, passes: int, tol: float) -> TopicPosterior:
    """All documents in each iteration; the bound never falls.

    Beliefs about documents begin afresh in each iteration as long as the bound gains by it: a document that committed
    itself to topics when they were still noise would hold on to them. After that they go on from where they were.
    """
    part = distributed.shard(problem.corpus.documents)
    corpus, weight = problem.corpus.take(part), None if problem.weight is None else problem.weight[part]
    random = np.random.default_rng(distributed.agreed(problem.seed))
    components = start(problem.topics, problem.corpus.size, random)
    topics = Topics(components, problem.document_prior, problem.topic_prior)
    trace: list[float] = []
    documents, fresh, converged = Documents(corpus, topics, weight), True, False
    with progress("LatentDirichlet", max_iter, show=problem.verbose) as report:
        for iteration in range(max_iter):
            topics.expect()
            own = topic_bound(topics.components, topics.topic_prior, topics.size)
            candidate = Documents(corpus, topics, weight) if fresh else documents
            bound = own + candidate.infer(passes, INNER_TOL)
            if fresh and trace and bound < trace[-1]:
                fresh, candidate = False, documents
                bound = own + candidate.infer(passes, INNER_TOL)
            documents = candidate
            gain = (bound - trace[-1]) / abs(bound) if trace else np.inf
            trace.append(bound)
            report(iteration + 1, bound=bound)
            topics.components = topics.topic_prior + documents.expected_counts()
            if problem.learn_prior:
                topics.document_prior = documents.best_prior()
            converged = gain < tol and tol > 0 and not fresh
            if converged:
                break
            fresh = fresh and gain >= tol
    return topics.posterior(trace, converged if tol > 0 else None, len(trace))


def ascend_in_batches(
    problem: TopicProblem, max_iter: int, passes: int, tol: float, batch_size: int, offset: float, decay: float
) -> TopicPosterior:
    """`max_iter` passes over the documents in batches; the trace holds the bound that each pass met on its way."""
    random = np.random.default_rng(distributed.agreed(problem.seed))
    corpus, weight = problem.corpus, np.ones(problem.corpus.documents) if problem.weight is None else problem.weight
    components = start(problem.topics, corpus.size, random)
    topics = Topics(components, problem.document_prior, problem.topic_prior)
    trace: list[float] = []
    converged = False
    with progress("LatentDirichlet", max_iter, show=problem.verbose) as report:
        for iteration in range(max_iter):
            order, bound = random.permutation(corpus.documents), 0.0
            for first in range(0, corpus.documents, batch_size):
                chosen = order[first : first + batch_size]
                rate = (passes, offset, decay, problem.learn_prior)
                bound += step(topics, corpus.take(chosen), weight.sum(), *rate, weight[chosen])
            bound += topic_bound(topics.components, topics.topic_prior, topics.size)
            gain = (bound - trace[-1]) / abs(bound) if trace else np.inf
            trace.append(bound)
            report(iteration + 1, bound=bound)
            converged = gain < tol and tol > 0
            if converged:
                break
    return topics.posterior(trace, converged if tol > 0 else None, len(trace))


def step(
    topics: Topics,
    batch: Corpus,
    total: float,
    passes: int,
    offset: float,
    decay: float,
    learn_prior: bool,
    weight: np.ndarray | None = None,
) -> float:
    """Move the topics towards what a batch of documents of `total` weight says of them; the bound of the batch."""
    weight = np.ones(batch.documents) if weight is None else weight
    part = distributed.shard(batch.documents)
    topics.steps += 1
    rate = (offset + topics.steps) ** -decay
    topics.expect()
    documents = Documents(batch.take(part), topics, weight[part])
    bound = documents.infer(passes, INNER_TOL)
    target = topics.topic_prior + total / weight.sum() * documents.expected_counts()
    topics.components += rate * (target - topics.components)
    if learn_prior:
        topics.document_prior = topics.document_prior + rate * (documents.best_prior() - topics.document_prior)
    return bound


def check_topics(owner: str, corpus: Corpus, weights: np.ndarray, prior: np.ndarray) -> None:
    """What the compiled loops over documents index: words below V, and as many priors as topics."""
    shapes = {"weights": (weights, "V K"), "prior": (prior, "K")}
    entries = {"words": (corpus.words, "n"), "counts": (corpus.counts, "n")}
    sizes = check_sizes(owner, shapes | entries)
    check_offsets(owner, corpus.starts, sizes["n"])
    check_indices(owner, "words", corpus.words, sizes["V"])


def infer(
    corpus: Corpus, weights: np.ndarray, prior: np.ndarray, passes: int, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """γ (n, K) and the bound (n,) of documents, given the weights (K, V) of words in topics."""
    check_topics("infer", corpus, weights.T, prior)
    topics, alpha = weights.shape[0], padded(prior, 1.0)
    gamma, bounds, ratios = (
        np.ones((corpus.documents, len(alpha))),
        np.empty(corpus.documents),
        np.empty(len(corpus.words)),
    )
    _infer(corpus, padded(np.ascontiguousarray(weights.T), 0.0), alpha, (gamma, ratios, bounds), topics, passes, tol)
    return np.ascontiguousarray(gamma[:, :topics]), bounds


def _infer(
    corpus: Corpus,
    weights: np.ndarray,
    prior: np.ndarray,
    told: tuple[np.ndarray, np.ndarray, np.ndarray],
    topics: int,
    passes: int,
    tol: float,
) -> None:
    """`infer_documents`, some documents at a time; γ, ratios and bounds are `told`."""
    gamma, ratios, bounds = told
    for first, last in blocks(np.diff(corpus.starts), BLOCK / len(prior)):
        own = (weights, prior, gamma[first:last], ratios, bounds[first:last], topics, passes, tol)
        infer_documents(corpus.starts[first : last + 1], corpus.words, corpus.counts, *own)
