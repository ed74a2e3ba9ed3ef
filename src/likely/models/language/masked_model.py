"""MaskedLanguageModel: each token of a text from all the others.

Σₜ log p(zₜ | z₋ₜ),      learned by hiding some tokens at random, and asking for them
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Categorical

from ...core.draws import Refused
from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.estimator import Estimator
from ...core.spec import is_integer
from ...core.validation import as_weights, device_of
from ...data.text import Words, as_texts, vocabulary_from_json
from ...inference import MAP, Inference
from ...networks.transformer import Transformer
from ...optim import AdamW, Cosine
from ...priors import Flat, Prior
from ..reports import Reports
from .fitting import blank, trained, vocabulary_for, work_of
from .masked_module import MaskedModule
from .masked_reading import Reader
from .masked_rows import MaskedWindows, SentencePairs, pair_up, shortened
from .masked_texts import Blanks, as_documents, in_order, unknown_token, with_blanks
from .model import MOST
from .texts import joined, perplexity_of

__all__ = ["MaskedLanguageModel"]

STEPS, BATCH = 5_000, 32


class MaskedLanguageModel(Reports, DensityMixin, Estimator):
    """p(token | all other tokens of its text), by a network that sees both sides: an encoder, as BERT is.

    `network` is a `Transformer`, or an `RNN`, `GRU` or `LSTM`, which gets both directions; `tokens` says how text is
    cut. In each batch a fraction `mask` of the tokens is hidden anew, and the network is asked for them (see
    `models.language.masking`). It sees `context` tokens: training cuts longer texts into windows, at other places in
    each epoch, and answers come from the window around the token in question.

    `fit` takes a string or a list of strings. With `next_sentence` it takes a list of documents, each a list of
    sentences, and learns too whether the second of two sentences follows the first, which `follows` answers.

    What is learned is good for other tasks: `FineTune(start=model)` begins there, and `transform` gives vectors.

    >>> from likely.networks import GRU
    >>> texts = ["the cat sat on the mat", "the dog sat on the log", "a cat ran to the dog"] * 5
    >>> model = MaskedLanguageModel(GRU(16), inference=MAP("adam(0.02)", epochs=40), random_state=0).fit(texts)
    >>> model.fill("the cat sat [mask] the mat")
    'the cat sat on the mat'
    >>> model.transform(["the cat ran"]).shape
    (1, 32)
    """

    log_prob_kind_: str = "estimate"
    sample = Refused(
        "p(token | all others) of each token need not belong to any distribution of whole texts; LanguageModel draws."
    )

    def __init__(
        self,
        network: Any = Transformer(),  # noqa: B008
        tokens: Any = Words(),  # noqa: B008
        context: int = 64,
        mask: float = 0.15,
        next_sentence: bool = False,
        prior: Prior = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.network, self.tokens, self.context = network, tokens, context
        self.mask, self.next_sentence = mask, next_sentence
        self.prior, self.inference, self.random_state = prior, inference, random_state
        self.device, self.verbose = device, verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, texts: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from a string, or a list of strings (documents, with `next_sentence`) with a weight for each."""
        for learned in ("vocabulary_", "posterior_", "_asked"):
            self.__dict__.pop(learned, None)
        self._check_arguments()
        given = as_documents(texts)[0] if self.next_sentence else as_texts(texts)
        self.vocabulary_ = vocabulary_for(self, given)
        self.posterior_ = trained(self, self._rows(texts, sample_weight, "texts"), self._rows, automatic, "estimate")
        return self

    def _check_arguments(self) -> None:
        if not is_integer(self.context) or self.context > MOST:
            raise SpecError(f"context={self.context!r}: must be an integer from 1 to {MOST:,}.")
        if not isinstance(self.mask, float) or not 0 < self.mask < 1:
            raise SpecError(f"mask={self.mask!r}: must be a fraction of the tokens, above 0 and below 1.")
        if not isinstance(self.next_sentence, bool):
            raise SpecError(f"next_sentence={self.next_sentence!r}: must be True or False.")
        if self.next_sentence and self.context < 3:
            raise SpecError(f"context={self.context}: two sentences and what parts them need a context of 3 or more.")

    def _rows(self, texts: Any, weight: Any, name: str = "validation") -> MaskedWindows | SentencePairs:
        """What the network is trained on, or validated on."""
        size = self.vocabulary_.size
        if self.next_sentence:
            given, document = as_documents(texts, name)
            own = as_weights(weight, texts)
        else:
            given, document = as_texts(texts, name), np.zeros(0)
            own = as_weights(weight, given)
        values, offsets = joined(self.vocabulary_, given, False, name)
        if len(values) == len(given):
            raise DataError(f"{name} has no tokens: {self.tokens!r} finds no tokens in it.")
        parts = torch.from_numpy(values), torch.from_numpy(offsets)
        if not self.next_sentence:
            rows = MaskedWindows.of(*parts, self.context, own)
            return replace(rows, fraction=self.mask, size=size).on(device_of(self.device))
        pairs = SentencePairs.of(*parts, torch.from_numpy(document), self.context, self.mask, size, own)
        return pairs.on(device_of(self.device))

    def _module(self) -> MaskedModule:
        return MaskedModule(self.network, self.vocabulary_.size, self.context, pairs=self.next_sentence)

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in self.__dict__

    # --- questions ----------------------------------------------------------------------------------------------
    def fill(self, text: Any) -> Any:
        """The text, or each of a list, with every `[mask]` replaced by the most probable token there.

        Each is the most probable given the rest, other masks unseen; the token of unknown words is never put in.
        """
        blanks = self._blanks(text)
        never, best = unknown_token(self.vocabulary_), np.zeros(len(blanks.owner), dtype=np.int64)
        for rows, log_probs in self._reader().at(*blanks[:4]):
            if never is not None and self.vocabulary_.size > 1:
                log_probs[:, never] = -math.inf
            best[rows] = log_probs.argmax(1).numpy()
        filled = []
        for number, around in enumerate(blanks.around):
            words = [self.vocabulary_.decode([token]) for token in best[blanks.owner == number]]
            filled.append("".join(part for pair in zip(around, [*words, ""], strict=True) for part in pair))
        return filled[0] if isinstance(text, str) else filled

    def predict_dist(self, text: Any) -> Categorical:
        """p(token | the rest) at each `[mask]` of a text, or of all texts of a list, one after the other."""
        blanks = self._blanks(text)
        return Categorical(logits=torch.cat([log_probs for _, log_probs in self._reader().at(*blanks[:4])]))

    def log_prob(self, texts: Any) -> np.ndarray:
        """The pseudo-log-likelihood of each text in nats, (n,): Σₜ log p(zₜ | z₋ₜ), each token hidden in its turn.

        A document, which a model with `next_sentence` takes too, has the sum over its sentences, each by itself.
        It is no log p(text), nor a bound on it (for a true p it is above log p on average): `log_prob_kind_` is
        "estimate". It compares texts of one length, under models with the same tokens.
        """
        values, offsets, document = self._in_order(texts)
        return np.bincount(document, self._log_prob(values, offsets))

    def score(self, texts: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of the pseudo-log-likelihood, in nats per text."""
        return float(np.average(self.log_prob(texts), weights=sample_weight))

    def perplexity(self, texts: Any) -> float:
        """exp of the mean of −log p(token | the rest): among how many equally probable ones it would be as unsure."""
        values, offsets, _ = self._in_order(texts)
        if not len(values):
            raise DataError("texts has no tokens to predict.")
        return perplexity_of(self._log_prob(values, offsets), len(values))

    def transform(self, texts: Any) -> np.ndarray:
        """A vector of each text or document, (n, width): the mean over its tokens of what the network makes of them.

        Texts longer than the context are read by windows side by side; members of an ensemble stand side by side.
        """
        values, offsets, document = self._in_order(texts)
        lengths = np.bincount(document, np.diff(offsets))
        if not lengths.all():
            raise DataError(f"texts[{lengths.argmin()}] has no tokens: {self.tokens!r} finds no tokens in it.")
        return self._reader().vectors(values, offsets, document)

    def follows(self, first: Any, second: Any) -> np.ndarray:
        """The probability that each second sentence follows the first one, (n,); needs `next_sentence`.

        It is against a sentence drawn from all documents, each as probable before. Of two that are longer than the
        context together, the longer one is cut.
        """
        check_is_fitted(self)
        if not self.next_sentence:
            raise SpecError("follows needs a model that was fitted with next_sentence=True.")
        sides = [as_texts(first, "first"), as_texts(second, "second")]
        if len(sides[0]) != len(sides[1]):
            raise DataError(f"first has {len(sides[0])} sentences, second {len(sides[1])}; they go in pairs.")
        values, offsets = in_order([self.vocabulary_.encode(text, "sentence") for side in sides for text in side])
        starts, lengths = torch.from_numpy(offsets[:-1]), torch.from_numpy(np.diff(offsets))
        count = len(sides[0])
        paired = torch.ones(count, dtype=torch.bool)
        one, two = shortened(lengths[:count], lengths[count:], paired, self.context)
        padded = torch.from_numpy(values if len(values) else np.zeros(1, np.int64))
        pieces = (starts[:count], one), (starts[count:], two)
        return self._reader().follows(*pair_up(padded, self.vocabulary_.size + 1, *pieces, paired))

    # --- helpers ------------------------------------------------------------------------------------------------
    def _reader(self) -> Reader:
        known = self.__dict__.get("_asked")
        if known is None:
            reader = Reader(self.posterior_, self.context, self.vocabulary_.size, work_of(self))
            known = self.__dict__["_asked"] = reader
        return known

    def _in_order(self, texts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tokens of all texts or sentences, where each begins, and which row each belongs to."""
        check_is_fitted(self)
        if self.next_sentence and isinstance(texts, list | tuple) and not any(isinstance(own, str) for own in texts):
            given, document = as_documents(texts)
        else:
            given = as_texts(texts)
            document = np.arange(len(given))
        names = ["texts"] if len(given) == 1 else [f"texts[{number}]" for number in document]
        coded = [self.vocabulary_.encode(*pair) for pair in zip(given, names, strict=True)]
        return *in_order(coded), document

    def _log_prob(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        per_value = np.zeros(len(values))
        for rows, log_probs in self._reader().at(values, offsets, owner, np.arange(len(values)) - offsets[owner]):
            per_value[rows] = log_probs[np.arange(len(log_probs)), values[rows]].numpy()
        return np.bincount(owner, per_value, len(offsets) - 1)

    def _blanks(self, text: Any) -> Blanks:
        check_is_fitted(self)
        blanks = with_blanks(self.vocabulary_, as_texts(text, "text"))
        longest = int(np.diff(blanks.offsets).max())
        if longest > self.context:
            warnings.warn(
                f"text has {longest} tokens, and context={self.context}: a mask is filled from the {self.context} "
                "tokens around it.",
                LikelyWarning,
                stacklevel=3,
            )
        return blanks

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        plain, tensors = self.posterior_.state()
        return {"vocabulary": self.vocabulary_.to_json(), "posterior": plain}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._check_arguments()
        self.vocabulary_ = vocabulary_from_json(learned["vocabulary"])
        self.posterior_ = blank(self, learned["posterior"], tensors)


def automatic(rows: int) -> Inference:
    """What `inference="auto"` means for so many rows: AdamW along a cosine, with decay of weights alone."""
    batch = min(BATCH, rows)
    steps = min(STEPS, max(200, 30 * (rows // batch)))
    optimizer = AdamW(2e-3, betas=(0.9, 0.98), weight_decay=0.01, only_weights=True)
    return MAP(optimizer, steps=steps, batch_size=batch, schedule=Cosine(final=0.02, warmup=0.05), clip_norm=1.0)
