"""Variational inference in latent Dirichlet allocation, document by document, compiled.

With q(θ) = Dirichlet(γ) and the weight w_vk of word v in topic k (exp E[log φ_kv], or φ_kv itself if it is known),

    γ_k ← α_k + e^{ψ(γ_k)} Σ_v n_v w_vk / norm_v,        norm_v = Σ_k e^{ψ(γ_k)} w_vk

Rows of topics are contiguous and padded to whole vectors of the processor (`padded`), so that the two loops over k of
a word are one load of its weights.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .digamma import digamma, exp_digamma
from .lanes import FAST

__all__ = [
    "document_statistics",
    "expected_weights",
    "infer_documents",
    "log_predictive",
    "sum_log_theta",
    "topic_bound",
]


@njit(**FAST)
def infer_documents(
    starts: np.ndarray,  # (n + 1,) where each document begins in words and counts
    words: np.ndarray,
    counts: np.ndarray,
    weights: np.ndarray,  # (V, K padded with 0)
    prior: np.ndarray,  # (K padded with 1)
    gamma: np.ndarray,  # (n, K padded), from where to start; overwritten
    ratios: np.ndarray,  # (entries,) n_v / norm_v at the end, for the statistics
    bounds: np.ndarray,  # (n,) the bound on log p(document)
    topics: int,
    passes: int,
    tol: float,
) -> int:
    """Coordinate ascent of each document until the mean |Δγ| falls below `tol`; the number of passes over all.

    `gamma` and `ratios` belong together: the ratios are the best ones for that γ, and the bound is theirs.
    """
    width = prior.shape[0]
    theta = np.empty(width)
    total = np.empty(width)
    used = 0
    for document in range(starts.shape[0] - 1):
        start, stop = starts[document], starts[document + 1]
        own = gamma[document]
        if start == stop:
            own[:] = prior
            bounds[document] = 0.0
            continue
        for _ in range(passes):
            used += 1
            for k in range(width):
                theta[k] = exp_digamma(own[k])
                total[k] = 0.0
            for entry in range(start, stop):
                row = weights[words[entry]]
                norm = 0.0
                for k in range(width):
                    norm += theta[k] * row[k]
                ratio = counts[entry] / max(norm, 1e-300)
                ratios[entry] = ratio
                for k in range(width):
                    total[k] += ratio * row[k]
            change = 0.0
            for k in range(width):
                total[k] = prior[k] + theta[k] * total[k]
                change += abs(total[k] - own[k])
            if change < tol * topics:
                break
            for k in range(width):
                own[k] = total[k]
        if change >= tol * topics:  # γ moved after its ratios were taken
            _finish(start, stop, words, counts, weights, own, theta, ratios)
        bounds[document] = _bound(start, stop, counts, ratios, prior, own, topics)
    return used


@njit(**FAST)
def _finish(
    start: int,
    stop: int,
    words: np.ndarray,
    counts: np.ndarray,
    weights: np.ndarray,
    own: np.ndarray,
    theta: np.ndarray,
    ratios: np.ndarray,
) -> None:
    for k in range(theta.shape[0]):
        theta[k] = exp_digamma(own[k])
    for entry in range(start, stop):
        row = weights[words[entry]]
        norm = 0.0
        for k in range(theta.shape[0]):
            norm += theta[k] * row[k]
        ratios[entry] = counts[entry] / max(norm, 1e-300)


@njit(**FAST)
def _bound(
    start: int, stop: int, counts: np.ndarray, ratios: np.ndarray, prior: np.ndarray, own: np.ndarray, topics: int
) -> float:
    """Σ_v n_v log norm_v − n ψ(γ₀) − KL(Dirichlet(γ) ‖ Dirichlet(α)); γ₀ the sum of γ."""
    length, bound, mass, prior_mass = 0.0, 0.0, 0.0, 0.0
    for entry in range(start, stop):
        length += counts[entry]
        bound += counts[entry] * math.log(counts[entry] / ratios[entry])
    for k in range(topics):
        mass += own[k]
        prior_mass += prior[k]
    level = digamma(mass)
    for k in range(topics):
        bound += math.lgamma(own[k]) - math.lgamma(prior[k]) + (prior[k] - own[k]) * (digamma(own[k]) - level)
    return bound - length * level + math.lgamma(prior_mass) - math.lgamma(mass)


@njit(**FAST)
def document_statistics(
    starts: np.ndarray, words: np.ndarray, ratios: np.ndarray, gamma: np.ndarray, statistics: np.ndarray
) -> None:
    """Add Σ_d e^{ψ(γ_dk)} n_dv / norm_dv to the statistics (V, K padded); times the weights it is E[n_vk]."""
    theta = np.empty(gamma.shape[1])
    for document in range(starts.shape[0] - 1):
        for k in range(theta.shape[0]):
            theta[k] = exp_digamma(gamma[document, k])
        for entry in range(starts[document], starts[document + 1]):
            row = statistics[words[entry]]
            ratio = ratios[entry]
            for k in range(theta.shape[0]):
                row[k] += ratio * theta[k]


@njit(**FAST)
def expected_weights(components: np.ndarray, weights: np.ndarray, topics: int) -> None:
    """exp E[log φ_kv] = exp(ψ(λ_vk) − ψ(Σ_v λ_vk)) of components λ (V, K padded), into `weights`."""
    width = components.shape[1]
    scale = np.zeros(width)
    for v in range(components.shape[0]):
        for k in range(width):
            scale[k] += components[v, k]
    for k in range(width):
        scale[k] = 1.0 / exp_digamma(scale[k]) if k < topics else 0.0
    for v in range(components.shape[0]):
        for k in range(width):
            weights[v, k] = exp_digamma(components[v, k]) * scale[k]


@njit(**FAST)
def topic_bound(components: np.ndarray, prior: float, topics: int) -> float:
    """−Σ_k KL(Dirichlet(λ_k) ‖ Dirichlet(β, …, β)): what the topics add to the bound of the documents."""
    bound = 0.0
    size = components.shape[0]
    mass = np.zeros(topics)
    for v in range(size):
        for k in range(topics):
            mass[k] += components[v, k]
    level = np.empty(topics)
    for k in range(topics):
        level[k] = digamma(mass[k])
        bound -= math.lgamma(mass[k])
    for v in range(size):
        for k in range(topics):
            value = components[v, k]
            bound += math.lgamma(value) + (prior - value) * (digamma(value) - level[k])
    return bound + topics * (math.lgamma(prior * size) - size * math.lgamma(prior))


@njit(**FAST)
def sum_log_theta(starts: np.ndarray, gamma: np.ndarray, weight: np.ndarray, topics: int) -> tuple[np.ndarray, float]:
    """Σ_d w_d E[log θ_dk] over the documents that have words, and the sum of their weights w."""
    total = np.zeros(topics)
    documents = 0.0
    for document in range(starts.shape[0] - 1):
        if starts[document + 1] > starts[document]:
            documents += weight[document]
            level = digamma(gamma[document, :topics].sum())
            for k in range(topics):
                total[k] += weight[document] * (digamma(gamma[document, k]) - level)
    return total, documents


@njit(**FAST)
def log_predictive(
    starts: np.ndarray, words: np.ndarray, counts: np.ndarray, word_topic: np.ndarray, theta: np.ndarray
) -> float:
    """Σ_dv n_dv log Σ_k θ_dk φ_kv, with φ as (V, K padded) and θ as (n, K padded)."""
    value = 0.0
    for document in range(starts.shape[0] - 1):
        for entry in range(starts[document], starts[document + 1]):
            chance = 0.0
            for k in range(theta.shape[1]):
                chance += theta[document, k] * word_topic[words[entry], k]
            value += counts[entry] * math.log(chance)
    return value
