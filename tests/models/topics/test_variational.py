"""Coordinate ascent of documents, against scipy and its own bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, psi

from likely.models.topics.lanes import padded
from likely.models.topics.variational import (
    document_statistics,
    expected_weights,
    infer_documents,
    log_predictive,
    sum_log_theta,
    topic_bound,
)

RANDOM = np.random.default_rng(0)
TOPICS, WORDS = 3, 5
STARTS, ENTRIES = np.array([0, 3, 3, 5]), np.array([0, 2, 4, 1, 2], np.int32)
COUNTS = np.array([2.0, 1.0, 4.0, 3.0, 1.0])
PRIOR = np.array([0.3, 0.5, 1.2])
COMPONENTS = RANDOM.gamma(2.0, 1.0, (WORDS, TOPICS))


def kl(p, q):
    """KL(Dirichlet(p) ‖ Dirichlet(q))."""
    inner = (p - q) @ (psi(p) - psi(p.sum()))
    return gammaln(p.sum()) - gammaln(p).sum() - gammaln(q.sum()) + gammaln(q).sum() + inner


def weights():
    out = np.empty((WORDS, len(padded(PRIOR, 1.0))))
    expected_weights(padded(COMPONENTS, 1.0), out, TOPICS)
    return out


def inferred(passes=500, tol=1e-13):
    gamma, ratios, bounds = np.ones((3, len(padded(PRIOR, 1.0)))), np.empty(len(ENTRIES)), np.empty(3)
    arrays = (STARTS, ENTRIES, COUNTS, weights(), padded(PRIOR, 1.0), gamma, ratios, bounds)
    infer_documents(*arrays, TOPICS, passes, tol)
    return gamma, ratios, bounds


def test_weights_are_exponentials_of_expected_logarithms():
    expected = np.exp(psi(COMPONENTS) - psi(COMPONENTS.sum(0)))
    np.testing.assert_allclose(weights()[:, :TOPICS], expected, rtol=1e-10)
    assert not weights()[:, TOPICS:].any()


def test_the_end_is_a_fixed_point_and_its_bound_is_the_elbo():
    gamma, ratios, bounds = inferred()
    w = weights()[:, :TOPICS]
    for document in range(3):
        own, here = gamma[document, :TOPICS], slice(STARTS[document], STARTS[document + 1])
        theta = np.exp(psi(own))
        norm = w[ENTRIES[here]] @ theta
        np.testing.assert_allclose(own, PRIOR + theta * (COUNTS[here] / norm @ w[ENTRIES[here]]), rtol=1e-8)
        np.testing.assert_allclose(ratios[here], COUNTS[here] / norm, rtol=1e-8)
        elbo = COUNTS[here] @ (np.log(norm) - psi(own.sum())) - kl(own, PRIOR)
        assert bounds[document] == pytest.approx(elbo, rel=1e-9, abs=1e-9)


def test_more_passes_never_lower_the_bound():
    values = np.stack([inferred(passes, 0.0)[2] for passes in (1, 2, 4, 8, 16)])
    assert (np.diff(values, axis=0) > -1e-10).all()


def test_statistics_are_expected_counts_of_words_in_topics():
    gamma, ratios, _ = inferred()
    statistics = np.zeros((WORDS, gamma.shape[1]))
    document_statistics(STARTS, ENTRIES, ratios, gamma, statistics)
    counts = (statistics * weights())[:, :TOPICS]
    np.testing.assert_allclose(counts.sum(1), np.bincount(ENTRIES, COUNTS, WORDS), rtol=1e-9, atol=1e-12)
    expected = np.zeros((WORDS, TOPICS))
    for document in range(3):
        for entry in range(STARTS[document], STARTS[document + 1]):
            share = np.exp(psi(gamma[document, :TOPICS])) * weights()[ENTRIES[entry], :TOPICS]
            expected[ENTRIES[entry]] += COUNTS[entry] * share / share.sum()
    np.testing.assert_allclose(counts, expected, rtol=1e-8, atol=1e-12)


def test_the_bound_of_topics_is_minus_their_divergence_from_the_prior():
    expected = -sum(kl(COMPONENTS[:, k], np.full(WORDS, 0.4)) for k in range(TOPICS))
    assert topic_bound(padded(COMPONENTS, 1.0), 0.4, TOPICS) == pytest.approx(expected, rel=1e-9)


def test_sums_over_documents_that_have_words():
    gamma, weight = RANDOM.gamma(2.0, 1.0, (3, 8)), np.array([2.0, 5.0, 0.5])
    total, count = sum_log_theta(STARTS, gamma, weight, TOPICS)
    own = gamma[:, :TOPICS]
    expected = psi(own) - psi(own.sum(1, keepdims=True))
    assert count == 2.5
    np.testing.assert_allclose(total, 2.0 * expected[0] + 0.5 * expected[2], rtol=1e-9)


def test_the_predictive_density_is_that_of_the_product():
    theta, phi = RANDOM.dirichlet(np.ones(TOPICS), 3), RANDOM.dirichlet(np.ones(WORDS), TOPICS).T
    chances = theta @ phi.T
    owner = np.repeat(np.arange(3), np.diff(STARTS))
    expected = COUNTS @ np.log(chances[owner, ENTRIES])
    value = log_predictive(STARTS, ENTRIES, COUNTS, padded(phi, 0.0), padded(theta, 0.0))
    assert value == pytest.approx(expected, rel=1e-12)
