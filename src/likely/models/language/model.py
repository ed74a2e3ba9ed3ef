"""LanguageModel: the distribution of text, token by token.

p(text) = Πₜ p(zₜ₊₁ | z_≤t),      z₀ the boundary before a text, and the one after it where texts have an end
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Categorical

from ...core.declared import FRACTION, Array, check_arrays
from ...core.draws import count_of
from ...core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from ...core.estimator import Estimator
from ...core.random import drawing
from ...core.spec import as_spec, fold, is_integer
from ...core.validation import as_weights, device_of
from ...data.text import Characters, as_texts, vocabulary_from_json
from ...decoding import Decoding, Sample
from ...priors import Flat, Prior
from ..reports import Reports
from .blend import Blend
from .blended import Blended, blend_weights, kept_apart, told_apart
from .fitting import automatic, blank, trained, vocabulary_for, work_of
from .kneser_ney import KneserNey
from .module import LanguageModule
from .ngram import NGram
from .texts import joined, kept, perplexity_of, without
from .trained import Trained
from .windows import Windows

__all__ = ["LanguageModel"]

MOST = 100_000
"""Tokens of context, at most."""
COUNTED, BLENDED = "counts.", "blend.weights"
"""Names in files: what was counted begins so, and the weights of counts beside a network."""


class LanguageModel(Reports, DensityMixin, Estimator):
    """p(text) as a product of p(next token | tokens before), by a network, or by counts (`NGram`).

    `network` is `NGram(order)`, or a `Transformer`, `RNN`, `GRU`, `LSTM` or `LRU`, which is made causal and reads
    tokens, or a `Blend` of both; `tokens` says how text is cut. `context` is how many tokens a network sees: what is
    longer is read by windows that overlap by half, so a token is predicted from context/2 before it at least, and from
    `context` at most. An `NGram` sees order − 1. Networks learn from windows of text that are cut anew in each epoch.

    `fit` takes a string, which is one text that goes on, or a list of strings: then each has an end, which the model
    learns to draw, and `log_prob` has a term for it. A `pathlib.Path` is read: of a file, one text; of a folder, the
    texts of its .txt files.

    >>> model = LanguageModel(NGram(4)).fit("the cat sat on the mat and the rat sat on the cat")
    >>> model.sample(prompt="the m", length=10, decoding="greedy")
    ['the mat and the']
    >>> bool(model.perplexity("the cat sat") < model.perplexity("tac eht tas"))
    True
    """

    log_prob_kind_: str = "exact"

    def __init__(
        self,
        network: Any = NGram(),  # noqa: B008
        tokens: Any = Characters(),  # noqa: B008
        context: int = 64,
        prior: Prior = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.network, self.tokens, self.context = network, tokens, context
        self.prior, self.inference, self.random_state = prior, inference, random_state
        self.device, self.verbose = device, verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, texts: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from a string, or from a list of strings with a weight for each."""
        for name in ("vocabulary_", "ends_", "counts_", "posterior_", "blend_weights_", "_asked"):
            self.__dict__.pop(name, None)
        counted, learned = self._parts()
        given = as_texts(texts)
        ends = not (isinstance(texts, str) or getattr(given, "single", False))
        vocabulary = vocabulary_for(self, given)
        values, offsets = joined(vocabulary, given, ends, dtype=np.int32 if counted is None else np.int64)
        if len(values) == len(given) * (1 + ends):
            raise DataError(f"texts has no tokens: {self.tokens!r} finds no tokens in it.")
        weight = as_weights(sample_weight, given)
        self.vocabulary_, self.ends_ = vocabulary, ends
        if counted is None:
            self._learn(values, offsets, weight)
            return self
        times = np.ones(len(given)) if weight is None else weight.numpy()
        if learned is not None:
            self._blend(counted.order, values, offsets, weight, times)
        self.counts_ = self._counted(counted.order, values, offsets, times)
        return self

    def _learn(self, values: np.ndarray, offsets: np.ndarray, weight: Tensor | None) -> None:
        self.posterior_ = trained(self, self._windows(values, offsets, weight), self._held_out, automatic)

    def _counted(self, order: int, values: np.ndarray, offsets: np.ndarray, times: np.ndarray) -> KneserNey:
        values, offsets = kept(values, offsets, times > 0)
        return KneserNey.fit(order, values, offsets, *self._sizes(), times[times > 0])

    def _blend(
        self, order: int, values: np.ndarray, offsets: np.ndarray, weight: Tensor | None, times: np.ndarray
    ) -> None:
        """The network, and the weights of what is counted beside it, from tokens that neither has seen."""
        apart = kept_apart(offsets, as_spec(self.network, Blend, "network").held_out)
        rest = without(values, offsets, apart)
        full = np.diff(rest[1]) > 1
        seen, places = kept(*rest, full)
        self._learn(seen, places, None if weight is None else weight[torch.from_numpy(full)])
        new, starts, own, texts = told_apart(values, offsets, apart, max(self.context, order))
        counted, known = self._counted(order, seen, places, times[full]).probabilities(new, starts)
        learned = np.exp(self._network_predictor().token_log_prob(new, starts)) if len(new) else counted
        often = np.repeat(times[texts], np.diff(starts) - 1)
        self.blend_weights_ = blend_weights(counted[own], learned[own], known[own], order, often[own])

    def _parts(self) -> tuple[NGram | None, Any]:
        """The n-gram and the network, one of them None; a `SpecError` for arguments that mean nothing."""
        if not is_integer(self.context) or self.context > MOST:
            raise SpecError(f"context={self.context!r}: must be an integer from 1 to {MOST:,}.")
        word = fold(self.network.partition("(")[0].strip()) if isinstance(self.network, str) else ""
        if word == "blend" or isinstance(self.network, Blend):
            blend = as_spec(self.network, Blend, "network")
            return blend.counts, blend.network
        if word != "ngram" and not isinstance(self.network, NGram):
            return None, self.network
        if self.inference != "auto" or as_spec(self.prior, Prior, "prior") != Flat():
            raise SpecError('NGram is fitted by counting: leave inference="auto" and prior=Flat(), or use a network.')
        return as_spec(self.network, NGram, "network"), None

    def _windows(self, values: np.ndarray, offsets: np.ndarray, weight: Tensor | None) -> Windows:
        texts, starts = torch.from_numpy(values), torch.from_numpy(offsets)
        return Windows.of(texts, starts, self.context, weight).on(device_of(self.device))

    def _held_out(self, texts: Any, weight: Any) -> Windows:
        given = as_texts(texts, "validation")
        return self._windows(*joined(self.vocabulary_, given, self.ends_, "validation"), as_weights(weight, given))

    def _module(self) -> LanguageModule:
        return LanguageModule(self._parts()[1], *self._sizes(), self.context)

    def _sizes(self) -> tuple[int, int]:
        """Symbols that are read, the boundary included, and symbols that may come next."""
        return self.vocabulary_.size + 1, self.vocabulary_.size + self.ends_

    def __sklearn_is_fitted__(self) -> bool:
        return "counts_" in self.__dict__ or "posterior_" in self.__dict__

    # --- questions ----------------------------------------------------------------------------------------------
    def log_prob(self, texts: Any) -> np.ndarray:
        """log p of each text in nats, (n,): its tokens, and its end where texts have one."""
        values, offsets = self._joined(texts)
        return self._predictor().log_prob(values, offsets)

    def score(self, texts: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of log p(text), in nats per text."""
        return float(np.average(self.log_prob(texts), weights=sample_weight))

    def perplexity(self, texts: Any) -> float:
        """exp of the mean of −log p per token: among how many equally probable ones the model would be as unsure."""
        values, offsets = self._joined(texts)
        predicted = len(values) - len(offsets) + 1
        if not predicted:
            raise DataError("texts has no tokens to predict.")
        return perplexity_of(self._predictor().log_prob(values, offsets), predicted)

    def bits_per_character(self, texts: Any) -> float:
        """−log₂ p per character; the text must be what its tokens say, so that p is that of all of it."""
        given = as_texts(texts)
        log_prob = self.log_prob(given).sum()
        for place, text in enumerate(given):
            if self.vocabulary_.decode(self.vocabulary_.encode(text)) != text:
                raise DataError(
                    f"texts[{place}] cannot be rebuilt from its tokens by {self.tokens!r}. "
                    "Ask for perplexity, which is per token, or use Characters() or BPE()."
                )
        return float(-log_prob / sum(len(text) for text in given) / math.log(2))

    def predict_dist(self, prompt: Any = "") -> Categorical:
        """p(next token | prompt), of one prompt or of a list; the number after the last token is the end of a text.

        A prompt longer than the context counts by its last tokens, and a warning says so.
        """
        check_is_fitted(self)
        prompts = as_texts(prompt, "prompt", empty=True)
        values, offsets = joined(self.vocabulary_, prompts, False, "prompt")
        self._warn_of_long(offsets)
        log_probs = self._predictor().following(values, offsets)
        return Categorical(logits=log_probs[0] if isinstance(prompt, str) else log_probs)

    def sample(
        self,
        n: int = 1,
        prompt: Any = "",
        length: int = 256,
        decoding: Any = Sample(),  # noqa: B008
        random_state: Any = None,
    ) -> list[str]:
        """n texts that begin with the prompt (or each with its own), and go on for `length` tokens or to their end.

        `decoding` says how tokens are chosen: `Sample`, `Greedy`, `Beam` or `Exhaustive` of `likely.decoding`. What is
        longer than the context counts by its last tokens; a warning says so if the prompt alone is.
        """
        check_is_fitted(self)
        count, way = count_of(n), as_spec(decoding, Decoding, "decoding")
        prompts = as_texts(prompt, "prompt", empty=True)
        if len(prompts) not in (1, count):
            raise DataError(f"prompt has {len(prompts)} texts; it must have 1, or n = {count}.")
        values, offsets = joined(self.vocabulary_, prompts, False, "prompt")
        self._warn_of_long(offsets)
        parts = [torch.from_numpy(part[1:]) for part in np.split(values, offsets[1:-1])]
        told = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-1)
        predictor = self._predictor()
        told = told.expand(count, -1).to(predictor.device)
        boundary = torch.full((count,), self.vocabulary_.size, device=predictor.device)
        end = self.vocabulary_.size if self.ends_ else None
        with torch.no_grad(), drawing(self._seed(random_state)):
            decoded = way.decode(predictor.step, predictor.start(count), boundary, length, end=end, prompt=told)
        tokens = decoded.tokens.cpu().numpy()
        return [self.vocabulary_.decode(row[(row >= 0) & (row < self.vocabulary_.size)]) for row in tokens]

    # --- helpers ------------------------------------------------------------------------------------------------
    def _predictor(self) -> KneserNey | Trained | Blended:
        if "posterior_" not in self.__dict__:
            return self.counts_
        if "counts_" not in self.__dict__:
            return self._network_predictor()
        return Blended(self.counts_, self._network_predictor(), self.blend_weights_)

    def _network_predictor(self) -> Trained:
        known = self.__dict__.get("_asked")
        if known is None:
            known = self.__dict__["_asked"] = Trained(self.posterior_, self.context, work_of(self))
        return known

    def _joined(self, texts: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return joined(self.vocabulary_, as_texts(texts), self.ends_)

    def _warn_of_long(self, offsets: np.ndarray) -> None:
        longest = int(np.diff(offsets).max()) - 1
        if "posterior_" in self.__dict__ and longest > self.context:
            warnings.warn(
                f"prompt has {longest} tokens, and context={self.context}: only the last "
                f"{self.context - max(1, self.context // 2) + 1} to {self.context} of them count.",
                LikelyWarning,
                stacklevel=3,
            )

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        plain: dict[str, Any] | None = None
        tensors: dict[str, Tensor] = {}
        if "posterior_" in self.__dict__:
            plain, tensors = self.posterior_.state()
        if "counts_" in self.__dict__:
            tensors = tensors | {COUNTED + name: own for name, own in self.counts_.tensors().items()}
        if "blend_weights_" in self.__dict__:
            tensors = tensors | {BLENDED: torch.from_numpy(self.blend_weights_)}
        return {"vocabulary": self.vocabulary_.to_json(), "ends": self.ends_, "posterior": plain}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        if not isinstance(learned["ends"], bool):
            raise ModelFileError(f"The file has ends={learned['ends']!r}; it must be true or false.")
        counted, network = self._parts()
        self.vocabulary_, self.ends_ = vocabulary_from_json(learned["vocabulary"]), learned["ends"]
        if (network is not None) != isinstance(learned["posterior"], dict):
            raise ModelFileError("The file does not fit its own specs: it has no posterior of its network.")
        own = {name.removeprefix(COUNTED): part for name, part in tensors.items() if name.startswith(COUNTED)}
        rest = {name: part for name, part in tensors.items() if not name.startswith(COUNTED)}
        if counted is not None:
            self.counts_ = KneserNey.restore(own, counted.order, *self._sizes())
            if network is not None:
                weights = {BLENDED: rest.pop(BLENDED).numpy()} if BLENDED in rest else {}
                check_arrays({BLENDED: Array("N", FRACTION)}, weights, {"N": counted.order}, "Blend")
                self.blend_weights_ = weights[BLENDED]
        elif own:
            raise ModelFileError("The file does not fit its own specs: it has counts beside its network.")
        if network is not None:
            self.posterior_ = blank(self, learned["posterior"], rest)
        elif rest:
            raise ModelFileError(f"The file does not fit NGram: it has {sorted(rest)[:3]}.")
