"""Text at the door: strings become rows by what `tokens` says, and the network decides which rows these are.

A network over steps (`RNN`, `LSTM`, `LRU`, `Transformer` …) reads the tokens of a text one after the other. One that
takes vectors (`Linear`, `MLP`) is given a bag of the words and pairs of words, and what they say of the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, ModelFileError, SpecError
from ...core.spec import as_spec, fold
from ...data.rows import Inputs, Rows
from ...data.sparse_rows import SparseRows
from ...data.text import (
    Bag,
    BagVocabulary,
    Encoder,
    Forms,
    FormVocabulary,
    Text,
    Tokens,
    Vocabulary,
    Words,
    is_cut,
    vocabulary_from_json,
)
from ...inference import Inference
from ...inference.training.fine_tune import vocabulary_at_start
from ...networks import Linear, Network, as_network
from ...priors import Flat, Normal, Prior
from ..evidence import Evidence

__all__ = [
    "encoder_of",
    "is_auto",
    "network_of",
    "prior_of",
    "restore_texts",
    "state_of_texts",
    "text_rows",
    "texts_of",
    "with_evidence",
]

MANY = 1 << 30
"""Tokens, to ask whether a network reads any."""
COUNTS = "text.counts"
"""Under which the file has how often each class has each word."""

SEEN = 100
"""Texts from which on words that are there once are unknown: so a network over steps learns what unknown words mean."""
SCALE = 1.5
"""Of the weights of bags, in units of η: what held-out texts of several kinds liked best, and hardly more than 0.5."""


def texts_of(X: Any, *, cut: bool = False) -> Sequence[Text] | None:
    """The texts of X, if that is what X is: strings, or with `cut` also lists of words.

    >>> texts_of(["to be", "or not"]), texts_of([["to", "be"], ["or"]], cut=True), texts_of([[1.0], [2.0]])
    (['to be', 'or not'], [['to', 'be'], ['or']], None)
    """
    if isinstance(X, str):
        raise DataError(f"X is one string, {_begin(X)}; it must be a list with a string for each row.")
    given = _listed(X)
    first = None if given is None else next((entry for entry in given if _words(entry) is not None), None)
    if given is None or first is None or (not isinstance(first, str) and not cut):
        return None
    texts = [_words(entry) if type(entry) is not str else entry for entry in given]
    for place, (entry, text) in enumerate(zip(given, texts, strict=True)):
        if text is None or isinstance(text, str) != isinstance(first, str):
            wanted = 'a string: leave it out, or give ""' if isinstance(first, str) else "a list of words"
            raise DataError(f"X[{place}] is {_begin(entry)}, and other rows are text; it must be {wanted}.")
    return texts  # type: ignore[return-value]


def encoder_of(tokens: Any, network: Network, rows: int) -> Encoder | Tokens:
    """What cuts the texts for a network: that which was asked for, or the usual for so many."""
    steps = network.reading(MANY) is not None
    if is_auto(tokens):
        per_token = getattr(network, "output", None) == "each"
        least = 2 if rows >= SEEN else 1
        return (Forms(least) if per_token else Words(least)) if steps else Bag()
    named = isinstance(tokens, str) and fold(tokens.partition("(")[0].strip()) in ("bag", "forms")
    if not named and not isinstance(tokens, Encoder):
        spec = as_spec(tokens, Tokens, "tokens")
        return spec if steps else Bag(spec)
    encoder = as_spec(tokens, Encoder, "tokens")
    if isinstance(encoder, Bag) and steps:
        raise SpecError(f"tokens={encoder!r} forgets the order of words, which {network!r} reads; use Words().")
    if isinstance(encoder, Forms) and not steps:
        raise SpecError(f"tokens={encoder!r} is for networks over steps, such as LSTM(); {network!r} takes a Bag().")
    return encoder


def text_rows(model: Any, X: Any, *, reset: bool) -> Rows | None:
    """Texts as rows for the network, whose vocabulary is learned with `reset`; None where X is no text."""
    network, auto = as_network(model.network), is_auto(model.tokens)
    if reset:
        for learned in ("vocabulary_", "evidence_"):
            model.__dict__.pop(learned, None)
    vocabulary = model.__dict__.get("vocabulary_")
    cut = vocabulary is not None or not auto or network.reading(MANY) is not None
    texts = texts_of(X, cut=cut)
    if texts is None:
        if vocabulary is not None:
            raise DataError("X must be a list of strings, one for each row: the model was fitted on texts.")
        if reset and not auto:
            raise DataError(f"tokens={model.tokens!r} is for texts: X must be a list of strings, one for each row.")
        return None
    if vocabulary is None and not reset:
        raise DataError("X has text; the model was fitted on numbers.")
    if vocabulary is None:
        if not any(len(text) for text in texts):
            raise DataError("X has no text: every row is empty.")
        vocabulary = model.vocabulary_ = _learned(model, texts, network)
    rows = vocabulary.rows(texts)
    evidence = None if reset else model.__dict__.get("evidence_")
    return rows if evidence is None else rows.beside(evidence.scores(rows))


def _learned(model: Any, texts: Sequence[Text], network: Network) -> Any:
    """The vocabulary of texts, or that of the model which the inference begins at."""
    inference = None if is_auto(model.inference) else as_spec(model.inference, Inference, "inference")
    known = vocabulary_at_start(inference)
    encoder = encoder_of(model.tokens, network, len(texts))
    if isinstance(known, Vocabulary | FormVocabulary) and network.reading(MANY) is not None:
        kind = type(encoder.fit([text for text in texts if len(text)]))
        if not is_auto(model.tokens) and kind is not type(known):
            raise SpecError(f"tokens={model.tokens!r}, but the start of FineTune has a {type(known).__name__}.")
        return known
    cutting = encoder.tokens if isinstance(encoder, Bag) else encoder
    if is_cut(texts) and not isinstance(cutting, Words | Forms):
        raise DataError(f"X has lists of words, which are the tokens of Words(), and not of {cutting!r}.")
    return encoder.fit([text for text in texts if len(text)])


def network_of(model: Any) -> Network:
    """The network of a model; one that reads tokens knows how many there are.

    Where the formula of a fit had no intercept, a linear network has no bias.
    """
    network, vocabulary = as_network(model.network), model.__dict__.get("vocabulary_")
    if model.__dict__.get("without_intercept_") and isinstance(network, Linear):
        return network.replace(bias=False)
    if not isinstance(vocabulary, Vocabulary | FormVocabulary):
        return network
    reading = network.reading(vocabulary.symbols)
    assert reading is not None
    told = getattr(reading, "tokens", None)
    if told is not None and told < vocabulary.symbols:
        raise SpecError(f"{network!r} reads {told} tokens, and the texts have {vocabulary.symbols}: leave tokens=None.")
    return reading


def with_evidence(model: Any, x: Inputs, index: Tensor, weight: Tensor | None, classes: int) -> Inputs:
    """Bags with what their words say of the classes, beside: of each row, as all others have it.

    `index` is the class of each row, NaN where that is missing.
    """
    vocabulary = model.__dict__.get("vocabulary_")
    if not isinstance(x, SparseRows) or not isinstance(vocabulary, BagVocabulary) or index.ndim != 1:
        return x
    times = torch.ones(len(x), dtype=torch.float64) if weight is None else weight.double()
    times = torch.where(index.isnan(), 0.0, times)
    labels = index.nan_to_num(0.0).long()
    model.evidence_ = Evidence.of(x, labels, times, classes, vocabulary.kinds)
    return x.beside(model.evidence_.held_out(x, labels, times))


def state_of_texts(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What was learned of texts, for a file: nothing where there were none."""
    vocabulary, evidence = (model.__dict__.get(name) for name in ("vocabulary_", "evidence_"))
    learned = {} if vocabulary is None else {"vocabulary": vocabulary.to_json()}
    return learned, {} if evidence is None else {COUNTS: evidence.counts}


def restore_texts(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Take back what `state_of_texts` gave; the other tensors are returned."""
    rest = dict(tensors)
    if "vocabulary" not in learned:
        return rest
    data = learned["vocabulary"]
    told = data.get("kind") if isinstance(data, Mapping) else None
    bag = told == "bag"
    read = {"bag": BagVocabulary.from_json, "forms": FormVocabulary.from_json}.get(told or "", vocabulary_from_json)
    vocabulary = model.vocabulary_ = read(data)
    kind = "sparse row" if bag else "sequence"
    if model.kind_ != kind:
        raise ModelFileError(f"The file has a vocabulary for rows of the kind {model.kind_!r}; it needs {kind!r}.")
    if bag != (as_network(model.network).reading(MANY) is None):
        raise ModelFileError("The file has a vocabulary that its network does not read.")
    width, counts = vocabulary.size, rest.pop(COUNTS, None)
    if counts is not None and isinstance(vocabulary, BagVocabulary):
        model.evidence_ = Evidence.restored(counts, len(model.classes_), vocabulary.kinds)
        width += model.evidence_.columns
    if bag and tuple(model.in_shape_) != (width,):
        raise ModelFileError(f"The file has bags of {width} columns for rows of shape {model.in_shape_}.")
    return rest


def prior_of(model: Any, unit: Tensor | None) -> Prior:
    """The prior that was asked for; "auto" is flat, and for the many weights of a bag of words normal."""
    if not is_auto(model.prior):
        return as_spec(model.prior, Prior, "prior")
    if not isinstance(model.__dict__.get("vocabulary_"), BagVocabulary):
        return Flat()
    return Normal(SCALE * (1.0 if unit is None else float(unit.reshape(-1)[0])))


def is_auto(value: Any) -> bool:
    """Whether an argument leaves the choice to the model."""
    return isinstance(value, str) and value == "auto"


def _listed(X: Any) -> list[Any] | None:
    """The entries of a list, of an array or of a column of a frame; None for what has more axes, or none."""
    if isinstance(X, list | tuple):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X) if X.ndim == 1 and X.dtype.kind in "OUT" else None
    column = hasattr(X, "to_list") and not hasattr(X, "columns")
    return X.to_list() if column else None


def _words(entry: Any) -> Text | None:
    """A string, or a list of strings; None for all else."""
    if isinstance(entry, str):
        return str(entry)
    if isinstance(entry, np.ndarray):
        entry = entry.tolist() if entry.ndim == 1 and entry.dtype.kind in "OUT" else None
    if isinstance(entry, list | tuple) and all(isinstance(word, str) for word in entry):
        return [str(word) for word in entry]
    return None


def _begin(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
