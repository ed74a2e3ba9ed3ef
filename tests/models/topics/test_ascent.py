"""Variational Bayes over documents: the bound rises, batches move towards the whole, weights are repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from likely.core.errors import DataError
from likely.models.topics.ascent import Documents, Topics, ascend, ascend_in_batches, infer, start, step
from likely.models.topics.corpus import Corpus
from likely.models.topics.problem import TopicProblem

TABLE = np.random.default_rng(0).poisson(1.5, (12, 6))
PRIOR = np.array([0.3, 0.6])


def corpus_of(table):
    rows = sparse.csr_array(table)
    return Corpus.of(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(float), table.shape[1]
    )


def problem(table=TABLE, *, learn=False, weight=None):
    return TopicProblem(corpus_of(table), 2, PRIOR, 0.2, learn, 0, False, weight)


@pytest.mark.parametrize("learn", [False, True], ids=["given", "learned"])
def test_the_bound_never_falls_and_tokens_are_kept(learn):
    posterior = ascend(problem(learn=learn), 30, 100, 0.0)
    assert (np.diff(posterior.trace) > -1e-6 * abs(posterior.trace[0])).all()
    assert posterior.iterations == 30
    np.testing.assert_allclose((posterior.components - 0.2).sum(0), TABLE.sum(0), rtol=1e-9)
    assert np.array_equal(posterior.document_prior, PRIOR) == (not learn)


def test_a_weight_is_a_repetition():
    weight = np.arange(12) % 3
    repeated = ascend(problem(np.repeat(TABLE, weight, axis=0)), 5, 50, 0.0)
    weighted = ascend(problem(weight=weight.astype(float)), 5, 50, 0.0)
    np.testing.assert_allclose(weighted.components, repeated.components, rtol=1e-8)
    np.testing.assert_allclose(weighted.trace, repeated.trace, rtol=1e-10)


def test_a_batch_moves_the_topics_by_its_rate():
    components = start(2, 6, np.random.default_rng(1))
    topics, same = Topics(components, PRIOR, 0.2), Topics(components, PRIOR, 0.2)
    same.expect()
    documents = Documents(corpus_of(TABLE[:4]), same)
    documents.infer(50, 1e-3)
    target = 0.2 + 12 / 4 * documents.expected_counts()[:, :2].T
    step(topics, corpus_of(TABLE[:4]), 12.0, 50, 3.0, 0.7, False)
    rate = 4.0**-0.7
    expected = (1 - rate) * components + rate * target
    np.testing.assert_allclose(topics.components[:, :2].T, expected, rtol=1e-9)
    assert topics.steps == 1


def test_batches_come_near_the_bound_of_the_whole():
    whole = ascend(problem(), 100, 100, 1e-6).trace[-1]
    batches = ascend_in_batches(problem(), 60, 100, 0.0, 4, 10.0, 0.7)
    assert batches.trace[-1] > batches.trace[0]
    assert abs(batches.trace[-1] - whole) < 0.1 * abs(whole)


def test_inference_of_known_topics_gives_one_document_the_same_alone():
    phi = np.random.default_rng(2).dirichlet(np.ones(6), 2)
    gamma, bounds = infer(corpus_of(TABLE), phi, PRIOR, 200, 1e-10)
    np.testing.assert_allclose(gamma.sum(1), PRIOR.sum() + TABLE.sum(1), rtol=1e-7)
    alone, bound = infer(corpus_of(TABLE[3:4]), phi, PRIOR, 200, 1e-10)
    np.testing.assert_allclose(alone[0], gamma[3], rtol=1e-9)
    assert bound[0] == pytest.approx(bounds[3], rel=1e-10)


def test_words_beyond_the_topics_are_refused():
    with pytest.raises(DataError, match="words"):
        infer(corpus_of(TABLE), np.full((2, 3), 1 / 3), PRIOR, 10, 1e-3)
