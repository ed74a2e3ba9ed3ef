from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2

from likely.models.topics.chain import Chain, walk
from likely.models.topics.corpus import Corpus
from likely.models.topics.problem import TopicProblem

ALPHA, BETA = np.array([0.5, 1.2]), 0.7
TINY = Corpus.of(np.array([0, 2, 4]), np.array([0, 1, 1, 2], np.int32), np.array([2.0, 1.0, 2.0, 1.0]), 3)


def problem(corpus, prior, smooth, seed=0, learn_prior=False):
    return TopicProblem(corpus, len(prior), np.asarray(prior, float), smooth, learn_prior, seed, False)


def made(seed, documents=40, words=30, topics=4, length=50):
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(words, 0.1), topics)
    theta = rng.dirichlet(np.full(topics, 0.3), documents)
    table = np.array([rng.multinomial(length, row @ phi) for row in theta])
    owner, word = table.nonzero()
    starts = np.concatenate([[0], np.cumsum((table > 0).sum(1))])
    return Corpus.of(starts, word.astype(np.int32), table[owner, word].astype(float), words)


def by_enumeration():
    """p(z | w) of all 2⁶ assignments of the tiny corpus, from the two Dirichlet-multinomials, by hand."""
    starts, words = TINY.tokens()
    owner = np.repeat([0, 1], np.diff(starts))
    logs = []
    for z in itertools.product(range(2), repeat=len(words)):
        inside, topic_word = np.zeros((2, 2)), np.zeros((2, 3))
        np.add.at(inside, (owner, z), 1)
        np.add.at(topic_word, (z, words), 1)
        documents = gammaln(inside + ALPHA).sum() - gammaln((inside + ALPHA).sum(1)).sum()
        topics = gammaln(topic_word + BETA).sum() - gammaln((topic_word + BETA).sum(1)).sum()
        constant = 2 * (gammaln(ALPHA.sum()) - gammaln(ALPHA).sum()) + 2 * (gammaln(3 * BETA) - 3 * gammaln(BETA))
        logs.append(documents + topics + constant)
    return np.array(logs)


def code(topics):
    return int(topics @ 2 ** np.arange(len(topics))[::-1])


def test_the_chain_visits_assignments_by_their_posterior_probability(seed):
    """χ² over all 64 states at the level 1e-6; every 8th sweep, so that states are nearly independent."""
    expected = by_enumeration()
    expected = np.exp(expected - np.logaddexp.reduce(expected))
    chain = Chain(problem(TINY, ALPHA, BETA, seed=seed))
    visits = np.zeros(64)
    draws = 40_000
    for _ in range(draws):
        for _ in range(8):
            chain.sweep()
        visits[code(chain.topics)] += 1
    statistic = ((visits - draws * expected) ** 2 / (draws * expected)).sum()
    assert (draws * expected).min() > 5
    assert statistic < chi2(63).isf(1e-6)


def test_the_log_joint_is_that_of_the_two_dirichlet_multinomials():
    logs = by_enumeration()
    chain = Chain(problem(TINY, ALPHA, BETA))
    for _ in range(20):
        chain.sweep()
        np.testing.assert_allclose(chain.log_joint(), logs[code(chain.topics)], rtol=1e-12)


@pytest.mark.parametrize("topics", [1, 3, 8, 13])
def test_counts_stay_those_of_the_assignments(topics):
    corpus = made(0)
    chain = Chain(problem(corpus, np.full(topics, 0.1), 0.05))
    for _ in range(30):
        chain.sweep()
    expected = np.zeros_like(chain.word_topic)
    np.add.at(expected, (chain.words, chain.topics), 1)
    np.testing.assert_array_equal(chain.word_topic, expected)
    np.testing.assert_array_equal(chain.topic, expected.sum(0))
    assert chain.topic.sum() == corpus.counts.sum()
    assert (chain.topics >= 0).all()
    assert (chain.topics < topics).all()


def test_the_average_of_a_chain_holds_every_token():
    corpus = made(1)
    posterior = walk(problem(corpus, np.full(4, 0.1), 0.05), sweeps=30, warmup=10, thin=4)
    np.testing.assert_allclose((posterior.components - 0.05).sum(), corpus.counts.sum(), rtol=1e-12)
    by_word = np.bincount(corpus.words, corpus.counts, corpus.size)
    np.testing.assert_allclose((posterior.components - 0.05).sum(0), by_word, rtol=1e-9, atol=1e-9)
    assert len(posterior.trace) == 3


def test_a_learned_prior_makes_the_assignments_more_probable():
    """Minka's fixed point never lowers p(z | α), which is p(w, z) up to a part without α."""
    chain = Chain(problem(made(2), np.full(4, 1.0), 0.05))
    for _ in range(20):
        chain.sweep()
    values = [chain.log_joint()]
    for _ in range(20):
        chain.learn_prior(steps=1)
        values.append(chain.log_joint())
    assert np.diff(values).min() > -1e-9
    assert values[-1] > values[0] + 1


def test_halves_part_every_document_and_lose_nothing():
    corpus = made(3, length=21)
    first, second = corpus.halves(0)
    np.testing.assert_array_equal(first.lengths(), np.full(40, 10.0))
    np.testing.assert_array_equal(second.lengths(), np.full(40, 11.0))
    dense = [np.zeros((40, corpus.size)) for _ in range(3)]
    for table, part in zip(dense, (corpus, first, second), strict=True):
        table[np.repeat(np.arange(40), np.diff(part.starts)), part.words] = part.counts
    np.testing.assert_array_equal(dense[1] + dense[2], dense[0])
    again = corpus.halves(0)
    np.testing.assert_array_equal(again[0].words, first.words)
    assert not np.array_equal(corpus.halves(1)[0].counts, first.counts)
