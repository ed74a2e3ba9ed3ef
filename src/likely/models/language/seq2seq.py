"""Seq2Seq: the distribution of a target text given a source text, token by token.

p(y | x) = Πₜ p(yₜ | y_<t, x),      the last yₜ is the end of the target
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.draws import count_of
from ...core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from ...core.estimator import Estimator
from ...core.random import drawing
from ...core.spec import as_spec, is_fraction, is_integer
from ...core.validation import as_weights
from ...data.rows import Ragged
from ...data.text import Characters, Tokens, Vocabulary, as_texts, vocabulary_from_json
from ...decoding import Beam, Decoding, Sample
from ...networks import Network
from ...networks.gru import GRU
from ...networks.layers.attention import SCORES
from ...priors import Flat, Prior
from ..reports import Reports
from .bodies import body_of
from .fitting import blank
from .pairs import ragged
from .seq2seq_fitting import module_of, read_pairs, trained, work_of
from .seq2seq_module import Seq2SeqModule
from .texts import perplexity_of
from .translator import Translator

__all__ = ["Seq2Seq"]

MOST = 100_000
"""Tokens of a text, at most."""
STRANGE = 0.5
"""A fraction of unknown tokens above which a source is hardly one of the language that was learned."""


class Seq2Seq(Reports, Estimator):
    """p(target | source): an encoder reads the source, a decoder writes the target token by token and looks at it.

    `encoder` and `decoder` are `RNN`, `GRU`, `LSTM` or `Transformer`, in any combination. `attention` is the score by
    which the decoder looks at the states of the encoder: "dot", "scaled", "general" or "additive". A recurrent decoder
    looks once at each step, a transformer in each of its layers. `tokens` says how texts are cut: one spec for sources
    and targets, which then have one vocabulary (and one table of vectors, where encoder and decoder are as wide); or a
    pair of specs, each with a vocabulary of its own. A `Transformer(tied=True)` reads η by the vectors of its tokens.
    With `smoothing` ε, training takes every token for one drawn at random with probability ε (label smoothing).

    >>> from likely.inference import MAP
    >>> pairs = ["ab", "ba", "aab", "bba", "abb", "bab"], ["ba", "ab", "baa", "abb", "bba", "bab"]
    >>> model = Seq2Seq(inference=MAP("adam(0.01)", steps=60), random_state=0).fit(*pairs)
    >>> model.predict(["aab", "ba"])
    ['baa', 'ab']
    >>> bool(model.log_prob(["aab"], ["baa"]) > model.log_prob(["aab"], ["aab"]))
    True
    """

    log_prob_kind_: str = "exact"

    def __init__(
        self,
        encoder: Any = GRU(64, bidirectional=True),  # noqa: B008
        decoder: Any = GRU(64),  # noqa: B008
        attention: Literal["dot", "scaled", "general", "additive"] = "scaled",
        tokens: Any = Characters(),  # noqa: B008
        smoothing: float = 0.0,
        prior: Prior = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.encoder, self.decoder, self.attention, self.tokens = encoder, decoder, attention, tokens
        self.smoothing, self.prior, self.inference, self.random_state = smoothing, prior, inference, random_state
        self.device, self.verbose = device, verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, sources: Any, targets: Any, sample_weight: Any = None) -> Self:
        """Learn from two lists of as many strings, with a weight for each pair."""
        for learned in ("vocabularies_", "longest_", "posterior_", "_asked"):
            self.__dict__.pop(learned, None)
        self._check_arguments()
        given, wanted = read_pairs(sources, targets)
        weight = as_weights(sample_weight, given)
        cuts = self._cuts()
        texts = [[*given, *wanted]] if len(cuts) == 1 else [given, wanted]
        self.vocabularies_ = tuple(cut.fit(own) for cut, own in zip(cuts, texts, strict=True))
        read, written = self._coded(given, 0), self._coded(wanted, 1)
        self.longest_ = (int(read.lengths.max()), int(written.lengths.max()) - 1)
        self.posterior_ = trained(self, read, written, weight)
        return self

    def _check_arguments(self) -> None:
        """A `SpecError` for arguments that mean nothing."""
        self._bodies()
        if self.attention not in SCORES:
            raise SpecError(f"attention={self.attention!r}: must be one of {', '.join(SCORES)}.")
        if not is_fraction(self.smoothing):
            raise SpecError(f"smoothing={self.smoothing!r}: must be a probability, 0 or more and below 1.")
        self._cuts()

    def _bodies(self) -> tuple[Network, Network]:
        return body_of(self.encoder, "encoder"), body_of(self.decoder, "decoder")

    def _cuts(self) -> list[Tokens]:
        """How texts are cut: one spec for all, or one for sources and one for targets."""
        if not isinstance(self.tokens, list | tuple):
            return [as_spec(self.tokens, Tokens, "tokens")]
        if len(self.tokens) != 2:
            raise SpecError(f"tokens has {len(self.tokens)} specs; it must be one, or a pair for sources and targets.")
        return [as_spec(own, Tokens, "tokens") for own in self.tokens]

    def _module(self) -> Seq2SeqModule:
        """A new module for what is known of the texts."""
        return module_of(self)

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in self.__dict__

    # --- questions ----------------------------------------------------------------------------------------------
    def log_prob(self, sources: Any, targets: Any) -> np.ndarray:
        """log p(target | source) of each pair in nats, (n,): its tokens and its end."""
        check_is_fitted(self)
        return self._translator().log_prob(*self._read(sources, targets))

    def score(self, sources: Any, targets: Any, sample_weight: Any = None) -> float:
        """The mean of log p(target | source), in nats per pair."""
        return float(np.average(self.log_prob(sources, targets), weights=sample_weight))

    def perplexity(self, sources: Any, targets: Any) -> float:
        """exp of the mean of −log p per token of the targets, the end of each included."""
        check_is_fitted(self)
        read, written = self._read(sources, targets)
        predicted = len(written.values) - len(written)
        return perplexity_of(self._translator().log_prob(read, written), predicted)

    def predict(self, sources: Any, decoding: Any = Beam(), length: int | None = None) -> list[str]:  # noqa: B008
        """A target for each source: with `Beam`, the most probable one that it finds.

        `decoding` says how tokens are chosen: `Beam`, `Greedy`, `Exhaustive` or `Sample` of `likely.decoding`. A
        target has `length` tokens at most, as many as the longest that was learned from unless given; a warning says
        how many had no end by then.
        """
        check_is_fitted(self)
        way = as_spec(decoding, Decoding, "decoding")
        given = as_texts(sources, "sources")
        read = self._coded(given, 0, asked=True)
        self._warn_of_strangers(given, read)
        texts, cut = self._decoded(read, way, length, self.random_state)
        if cut:
            most = self.longest_[1] - 1 if length is None else length
            warnings.warn(
                f"{cut} of {len(texts)} targets had no end after {most} tokens and are cut there; a larger length= "
                "lets them go on.",
                LikelyWarning,
                stacklevel=2,
            )
        return texts

    def sample(self, sources: Any, n: int = 1, length: int | None = None, random_state: Any = None) -> np.ndarray:
        """n targets for each source, drawn from p(target | source): an array of strings (n, sources).

        What has no end after `length` tokens, as many as the longest that was learned from, is cut there.
        """
        check_is_fitted(self)
        count = count_of(n)
        read = self._coded(as_texts(sources, "sources"), 0, asked=True)
        rows = torch.arange(len(read)).repeat(count).to(read.device)
        texts, _ = self._decoded(read[rows], Sample(), length, random_state)
        return np.array(texts, dtype=object).reshape(count, len(read))

    def attention_weights(self, source: str, target: str) -> np.ndarray:
        """How much each token of the target looks at each token of the source when it is predicted: rows sum to 1.

        (t + 1, s + 1): the last row is that of the end of the target, and the last column that of the end of the
        source. A transformer has the mean over the heads of its last layer; several members are averaged.
        """
        check_is_fitted(self)
        for name, text in (("source", source), ("target", target)):
            if not isinstance(text, str):
                raise DataError(f"{name} must be one string; found {type(text).__name__}.")
        return self._translator().attention(*self._read([source], [target]))

    # --- helpers ------------------------------------------------------------------------------------------------
    def _decoded(self, read: Ragged, way: Decoding, length: int | None, seed: Any) -> tuple[list[str], int]:
        """Texts, and how many of them were cut."""
        limit = self._limit(length)
        translator, vocabulary = self._translator(), self.vocabularies_[-1]
        with torch.no_grad(), drawing(self._seed(seed)):
            tokens = translator.decoded(read.to(translator.device), way, limit)
        ended = [bool(len(own)) and own[-1] == vocabulary.size for own in tokens]
        texts = [vocabulary.decode(own[:-1]) for own in tokens]  # what came in place of an end is one too many
        return texts, len(ended) - sum(ended)

    def _limit(self, length: int | None) -> int:
        """How many symbols are chosen at most: so many tokens, and the end."""
        if length is None:
            return self.longest_[1]
        if not is_integer(length) or length > MOST:
            raise DataError(
                f"length={length!r}: how many tokens a target may have must be an integer from 1 to {MOST:,}."
            )
        self._refuse_longer(
            np.array([length]), 1, "length={size} is more than the {most} that positions were learned for"
        )
        return length + 1

    def _translator(self) -> Translator:
        known = self.__dict__.get("_asked")
        if known is None:
            outputs = self.vocabularies_[-1].size + 1
            known = self.__dict__["_asked"] = Translator(self.posterior_, outputs, work_of(self))
        return known

    def _read(self, sources: Any, targets: Any) -> tuple[Ragged, Ragged]:
        given, wanted = read_pairs(sources, targets, empty=True)
        device = self._translator().device
        return self._coded(given, 0, asked=True).to(device), self._coded(wanted, 1, asked=True).to(device)

    def _coded(self, texts: Sequence[str], side: int, name: str | None = None, *, asked: bool = False) -> Ragged:
        """Tokens of sources (side 0), each with its end; of targets (side 1), with a boundary before them as well."""
        vocabulary, who = self.vocabularies_[-side], name or ("sources", "targets")[side]
        end = np.array([vocabulary.size])
        before = end[:side]
        coded = [vocabulary.encode(text, f"{who}[{place}]") for place, text in enumerate(texts)]
        if asked:
            lengths = np.array([len(own) for own in coded])
            self._refuse_longer(
                lengths, side, who + "[{place}] has {size} tokens, and positions were learned for {most}"
            )
        return ragged([np.concatenate([before, own, end]) for own in coded])

    def _refuse_longer(self, lengths: np.ndarray, side: int, words: str) -> None:
        """A `DataError` where a transformer that learned its positions has none for what is asked."""
        spec: Any = self._bodies()[side]
        if getattr(spec, "positions", None) != "learned":
            return
        most, place = (spec.longest or self.longest_[side]) - 1, int(lengths.argmax())
        if lengths[place] > most:
            too_long = words.format(place=place, size=lengths[place], most=most)
            raise DataError(
                f'{too_long} by Transformer(positions="learned"); fit with longest={lengths[place] + 1} or more, '
                'or with positions="sinusoidal" or "relative", which have no maximum length.'
            )

    def _warn_of_strangers(self, texts: Sequence[str], read: Ragged) -> None:
        """Say so if most tokens of the sources are unknown, and whether they look like targets."""
        fraction = _unknown(self.vocabularies_[0], read.values.numpy())
        if fraction <= STRANGE:
            return
        other = self.vocabularies_[-1]
        swapped = np.concatenate([other.encode(text) for text in texts]) if other.unknown_token is not None else None
        hint = ""
        if len(self.vocabularies_) == 2 and swapped is not None and _unknown(other, swapped) < fraction:
            hint = (
                f" Of the vocabulary of targets {_unknown(other, swapped):.0%} are unknown: are sources and targets "
                "swapped?"
            )
        warnings.warn(
            f"{fraction:.0%} of the tokens of sources are unknown to the model.{hint}", LikelyWarning, stacklevel=3
        )

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        plain, tensors = self.posterior_.state()
        vocabularies = [own.to_json() for own in self.vocabularies_]
        return {"vocabularies": vocabularies, "longest": list(self.longest_), "posterior": plain}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._check_arguments()
        if not isinstance(learned["vocabularies"], list) or len(learned["vocabularies"]) != len(self._cuts()):
            raise ModelFileError("The file does not fit its own specs: it needs a vocabulary for each of its tokens.")
        longest = learned["longest"]
        if not isinstance(longest, list) or len(longest) != 2 or not all(is_integer(own) for own in longest):
            raise ModelFileError(f"The file has longest={longest!r}; it must be two integers above 0.")
        self.vocabularies_ = tuple(vocabulary_from_json(own) for own in learned["vocabularies"])
        self.longest_ = (longest[0], longest[1])
        self.posterior_ = blank(self, learned["posterior"], tensors)


def _unknown(vocabulary: Vocabulary, tokens: np.ndarray) -> float:
    """The fraction of tokens that stand for what the vocabulary does not know."""
    own = tokens[tokens < vocabulary.size]
    return float((own == vocabulary.unknown_token).mean()) if len(own) and vocabulary.unknown_token is not None else 0.0
