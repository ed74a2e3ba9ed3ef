"""Documents at the door: three ways to write one corpus, and words for what is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from likely import LatentDirichlet
from likely.core.errors import DataError
from likely.models.topics.documents import read_corpus

TABLE = np.array([[2, 0, 1], [0, 0, 0], [0, 3, 1]])


@pytest.mark.parametrize(
    "X",
    [
        TABLE,
        TABLE.astype(np.float32),
        sparse.csr_array(TABLE),
        sparse.coo_array(([1, 1, 1, 3, 1], ([0, 0, 0, 2, 2], [0, 0, 2, 1, 2])), (3, 3)),  # an entry in two parts
        [[0, 2, 0], [], np.array([1, 1, 2, 1])],
    ],
    ids=["table", "float32", "csr", "coo", "tokens"],
)
def test_all_forms_are_one_corpus(X):
    model = LatentDirichlet()
    corpus = read_corpus(model, X, reset=True)
    assert model.n_features_in_ == corpus.size == 3
    assert corpus.starts.tolist() == [0, 2, 2, 4]
    assert corpus.words.tolist() == [0, 2, 1, 2]
    assert corpus.counts.tolist() == [2, 1, 3, 1]
    assert (corpus.starts.dtype, corpus.words.dtype, corpus.counts.dtype) == (np.int64, np.int32, np.float64)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.array([[1.0, 0.5]]), r"a fraction \(0.5\) at document 0, word 1; .*not tf-idf"),
        (np.array([[1.0, 0.0], [0.0, -2.0]]), r"a negative value \(-2\) at document 1, word 1"),
        (sparse.csr_array(np.array([[np.nan]])), "NaN at document 0, word 0"),
        (sparse.csr_array((0, 3)), r"X is empty: its shape is \(0, 3\)"),
        (np.ones((2, 2, 2)), "needs one row of counts a document"),
        ([], "X is an empty list"),
        (["a text"], "Document 0 of X is text; give token ids"),
        ([[0], [1.5]], "Document 1 of X has values of kind float64"),
        ([[0, -1]], "Document 0 of X has the token -1 at position 1"),
    ],
)
def test_what_is_no_count_is_refused_by_its_place(X, words):
    with pytest.raises(DataError, match=words):
        read_corpus(LatentDirichlet(), X, reset=True)


def test_new_words_are_refused():
    model = LatentDirichlet()
    read_corpus(model, TABLE, reset=True)
    with pytest.raises(DataError, match=r"Document 1 of X has the word 7 at position 0, but the model knows .* 0 … 2"):
        read_corpus(model, [[0], [7]], reset=False)
    with pytest.raises(DataError, match="X has 4 features, but LatentDirichlet is expecting 3 features"):
        read_corpus(model, sparse.csr_array(np.ones((1, 4))), reset=False)
    assert read_corpus(model, [[0]], reset=False).size == 3
