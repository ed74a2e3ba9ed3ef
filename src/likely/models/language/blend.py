"""Blend: what was counted and what a network learned, mixed token by token.

p(z | past) = wₖ p_counts(z | past) + (1 − wₖ) p_network(z | past),      k of the last tokens were seen together before
"""

from __future__ import annotations

from ...core.spec import Spec, as_spec, is_fraction, require
from ...networks import Network, as_network
from ...networks.lstm import LSTM
from .ngram import NGram

__all__ = ["Blend"]


class Blend(Spec, axis="blend"):
    """Kneser–Ney counts beside a network, in `LanguageModel(Blend(NGram(7), LSTM(256)))`.

    Counts know by heart what was said before; a network guesses what was not. The fraction `held_out` of the tokens is
    kept from both, and tells the weights wₖ (by EM): one for each number k of tokens that counts have seen together, up
    to order − 1. Then all tokens are counted.

    >>> from likely import LanguageModel
    >>> text = "the cat sat on the mat and the rat sat on the cat " * 4
    >>> model = LanguageModel(Blend(NGram(4), LSTM(8)), context=16, random_state=0).fit(text)
    >>> model.blend_weights_.shape, bool(model.perplexity("the cat sat") < model.perplexity("tac eht tas"))
    ((4,), True)
    """

    counts: NGram = NGram()
    network: Network = LSTM(256)
    held_out: float = 0.05

    def validate(self) -> None:
        """Text becomes specs."""
        object.__setattr__(self, "counts", as_spec(self.counts, NGram, "counts"))
        object.__setattr__(self, "network", as_network(self.network))
        require(is_fraction(self.held_out) and self.held_out > 0, self, "held_out", "a fraction between 0 and 1")
