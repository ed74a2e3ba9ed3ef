"""A chain of Gibbs sweeps keeps its counts, and its joint probability is the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from likely.core.errors import DataError
from likely.models.topics.chain import Chain, walk
from likely.models.topics.corpus import Corpus
from likely.models.topics.problem import TopicProblem

CORPUS = Corpus.of(np.array([0, 2, 3, 6]), np.array([0, 1, 2, 0, 1, 3], np.int32), np.array([3.0, 1, 2, 1, 2, 4]), 4)
PRIOR = np.array([0.2, 0.7])


def problem(**changes):
    return TopicProblem(CORPUS, 2, PRIOR, 0.3, False, 5, False)._replace(**changes)


def log_joint(chain):
    """log p(w, z) from the counts of topics in documents and words in topics."""
    owner = np.repeat(np.arange(3), np.diff(chain.starts))
    in_documents = np.zeros((3, 2))
    np.add.at(in_documents, (owner, chain.topics), 1)
    in_topics = np.zeros((2, 4))
    np.add.at(in_topics, (chain.topics, chain.words), 1)
    value = 0.0
    for counts, prior in [*((n, PRIOR) for n in in_documents), *((n, np.full(4, 0.3)) for n in in_topics)]:
        value += gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
        value += (gammaln(prior + counts) - gammaln(prior)).sum()
    return value


def test_counts_and_the_joint_follow_from_the_topics():
    chain = Chain(problem())
    for _ in range(5):
        chain.sweep()
        counts = np.zeros((4, 2), int)
        np.add.at(counts, (chain.words, chain.topics), 1)
        np.testing.assert_array_equal(chain.word_topic[:, :2], counts)
        np.testing.assert_array_equal(chain.topic[:2], counts.sum(0))
        assert chain.log_joint() == pytest.approx(log_joint(chain), rel=1e-10)


def test_the_posterior_is_the_average_of_the_states_that_count():
    """Of 9 sweeps after 3, the 5th, 7th and 9th: those whose distance from the last is even."""
    chain, kept = Chain(problem()), []
    for done in range(1, 10):
        chain.sweep()
        if done in (5, 7, 9):
            kept.append(chain.word_topic[:, :2].T.copy())
    posterior = walk(problem(), 9, 3, 2)
    np.testing.assert_allclose(posterior.components, 0.3 + np.mean(kept, 0), rtol=1e-12)
    assert posterior.trace == [chain.log_joint()]
    np.testing.assert_array_equal(posterior.document_prior, PRIOR)


def test_a_weight_is_a_repetition_and_a_fraction_is_refused():
    weighted = walk(problem(weight=np.array([2.0, 0.0, 1.0])), 12, 2, 1)
    repeated = walk(problem(corpus=CORPUS.take(np.array([0, 0, 2]))), 12, 2, 1)
    np.testing.assert_array_equal(weighted.components, repeated.components)
    with pytest.raises(DataError, match="sample_weight has fractions; CollapsedGibbs repeats documents"):
        walk(problem(weight=np.array([0.5, 1.0, 1.0])), 12, 2, 1)


def test_a_learned_prior_raises_the_joint():
    chain = Chain(problem())
    for _ in range(10):
        chain.sweep()
    before = chain.log_joint()
    chain.learn_prior(50)
    assert chain.log_joint() > before
