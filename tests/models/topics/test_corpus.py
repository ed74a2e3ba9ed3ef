"""A corpus as flat arrays is the table of its counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from likely.models.topics.corpus import Corpus

TABLE = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 5, 0, 1], [1, 1, 1, 4]])


@pytest.fixture
def corpus():
    rows = sparse.csr_array(TABLE)
    return Corpus.of(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(float), 4)


def table(corpus):
    return sparse.csr_array((corpus.counts, corpus.words, corpus.starts), (corpus.documents, corpus.size)).toarray()


def test_documents_and_their_lengths(corpus):
    assert corpus.documents == 4
    np.testing.assert_array_equal(corpus.lengths(), TABLE.sum(1))
    np.testing.assert_array_equal(table(corpus), TABLE)


def test_some_documents_are_rows_of_the_table(corpus):
    np.testing.assert_array_equal(table(corpus.take(slice(1, 3))), TABLE[1:3])
    np.testing.assert_array_equal(table(corpus.take(slice(2, 2))), TABLE[2:2])
    chosen = np.array([3, 0, 0, 1])
    np.testing.assert_array_equal(table(corpus.take(chosen)), TABLE[chosen])


def test_tokens_are_words_as_often_as_they_count(corpus):
    starts, words = corpus.tokens()
    for document in range(4):
        own = words[starts[document] : starts[document + 1]]
        np.testing.assert_array_equal(np.bincount(own, minlength=4), TABLE[document])


@pytest.mark.parametrize("seed", range(5))
def test_halves_add_up_and_are_halves(corpus, seed):
    first, second = (table(half) for half in corpus.halves(seed))
    np.testing.assert_array_equal(first + second, TABLE)
    np.testing.assert_array_equal(first.sum(1), TABLE.sum(1) // 2)
