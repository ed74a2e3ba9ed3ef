"""Documents at the door: counts of words, or lists of token ids, become one corpus or a clear error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ...core.errors import DataError
from ...core.validation import as_rows
from .corpus import Corpus

__all__ = ["read_corpus"]

NEEDS = "LatentDirichlet needs counts of words: 0, 1, 2, …"


def read_corpus(model: Any, X: Any, *, reset: bool) -> Corpus:
    """X as a corpus. A plain list (or tuple) is documents of token ids; everything else is a table of counts (n, V)."""
    if isinstance(X, list | tuple):
        return _from_tokens(model, X, reset)
    if sparse.issparse(X):
        table = sparse.csr_array(X)
        _check_width(model, table.shape, reset)
    else:
        rows = as_rows(model, X, reset=reset)
        if rows.ndim != 2:
            raise DataError(f"X has shape {tuple(rows.shape)}; LatentDirichlet needs one row of counts a document.")
        table = sparse.csr_array(rows.numpy())
    table.sum_duplicates()
    if table.data.dtype.kind not in "biuf":
        raise DataError(f"X has values of kind {table.data.dtype}; {NEEDS}.")
    counts = table.data.astype(np.float64)
    _check_counts(table, counts)
    kept = counts > 0
    starts = np.concatenate([[0], np.cumsum(kept)])[table.indptr]
    return Corpus.of(starts.astype(np.int64), table.indices[kept].astype(np.int32), counts[kept], table.shape[1])


def _check_width(model: Any, shape: tuple[int, ...], reset: bool) -> None:
    if 0 in shape:
        raise DataError(f"X is empty: its shape is {shape}.")
    if reset:
        model.n_features_in_ = shape[1]
        vars(model).pop("feature_names_in_", None)  # those of an earlier fit on a table
    elif shape[1] != model.n_features_in_:
        raise DataError(
            f"X has {shape[1]} features, but {type(model).__name__} is expecting {model.n_features_in_} features "
            "as input: one column for each word of its vocabulary."
        )


def _check_counts(table: Any, counts: np.ndarray) -> None:
    """The first value that is not a count, by its place."""
    bad = ~((counts >= 0) & (counts == np.floor(counts)) & (counts < 2.0**31))
    if not bad.any():
        return
    entry = int(bad.argmax())
    document, value = int(np.searchsorted(table.indptr, entry, side="right")) - 1, float(counts[entry])
    kind = (
        "NaN"
        if np.isnan(value)
        else f"a negative value ({value:g})"
        if value < 0
        else f"a fraction ({value:g})"
        if value < 2.0**31
        else f"a value too large to count ({value:g})"
    )
    advice = " (not tf-idf or frequencies)" if "fraction" in kind else ""
    raise DataError(f"X has {kind} at document {document}, word {table.indices[entry]}; {NEEDS}{advice}.")


def _from_tokens(model: Any, X: Sequence[Any], reset: bool) -> Corpus:
    if not len(X):
        raise DataError("X is an empty list; LatentDirichlet needs at least one document.")
    documents = [_tokens(document, place) for place, document in enumerate(X)]
    largest = max((int(tokens.max()) for tokens in documents if len(tokens)), default=-1)
    if reset:
        model.n_features_in_ = largest + 1
        vars(model).pop("feature_names_in_", None)
    elif largest >= model.n_features_in_:
        place = next(i for i, tokens in enumerate(documents) if len(tokens) and tokens.max() >= model.n_features_in_)
        position = int((documents[place] >= model.n_features_in_).argmax())
        raise DataError(
            f"Document {place} of X has the word {documents[place][position]} at position {position}, but the model "
            f"knows the words 0 … {model.n_features_in_ - 1}; leave new words out, or fit on counts (n, V) that have "
            "a column for every word."
        )
    counted = [np.unique(tokens, return_counts=True) for tokens in documents]
    starts = np.concatenate([[0], np.cumsum([len(words) for words, _ in counted])])
    words = np.concatenate([words for words, _ in counted]).astype(np.int32)
    counts = np.concatenate([counts for _, counts in counted]).astype(np.float64)
    return Corpus.of(starts, words, counts, model.n_features_in_)


def _tokens(document: Any, place: int) -> np.ndarray:
    """One document as integers from 0."""
    if isinstance(document, str):
        raise DataError(
            f"Document {place} of X is text; give token ids, or counts (scikit-learn's CountVectorizer makes them)."
        )
    tokens = np.asarray(document)
    if tokens.ndim != 1 or (len(tokens) and tokens.dtype.kind not in "iu"):
        problem = f"shape {tokens.shape}" if tokens.ndim != 1 else f"values of kind {tokens.dtype}"
        raise DataError(
            f"Document {place} of X has {problem}; in a list, each document is a list of token ids 0, 1, 2, … "
            "(a table of counts is an array, a sparse matrix or a frame)."
        )
    if len(tokens) and (tokens.min() < 0 or tokens.max() >= 2**31 - 1):
        position = int(((tokens < 0) | (tokens >= 2**31 - 1)).argmax())
        raise DataError(
            f"Document {place} of X has the token {tokens[position]} at position {position}; ids are 0, 1, 2, …"
        )
    return tokens.astype(np.int64)
