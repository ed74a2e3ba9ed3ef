"""NGram: the last few tokens are all that counts for the next one."""

from __future__ import annotations

from ...core.spec import Spec, is_integer, require

__all__ = ["NGram"]

MOST = 50
"""Beyond it, contexts are hardly ever seen twice."""


class NGram(Spec, axis="ngram"):
    """p(next | last order − 1 tokens) by counts, with interpolated modified Kneser–Ney smoothing.

    It stands where a network would, in `LanguageModel(NGram(7))`, and is fitted in seconds by counting.

    >>> from likely import LanguageModel
    >>> LanguageModel(NGram(3)).fit("abcabcabc").predict_dist("ab").probs.argmax()
    tensor(2)
    """

    order: int = 7

    def validate(self) -> None:
        require(is_integer(self.order) and self.order <= MOST, self, "order", f"an integer from 1 to {MOST}")
