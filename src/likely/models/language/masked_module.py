"""The module of a masked language model: a network that sees both sides, and log p of what was hidden from it.

log p(zₜ | z seen) = log softmax(network(z seen; θ))ₜ
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from ...networks import Network, as_network
from .windows import ABSENT

__all__ = ["MaskedModule", "two_sided_network"]

NEEDED = "MaskedLanguageModel needs a network that sees tokens on both sides: Transformer, RNN, GRU or LSTM"


def two_sided_network(network: Any, symbols: int, context: int) -> Network:
    """The network as a masked language model builds it: over tokens, in both directions, with an answer at each step.

    >>> from likely.networks import GRU
    >>> two_sided_network(GRU(8), 30, 64)
    GRU(hidden=8, bidirectional=True, output='each', tokens=30)
    """
    spec = as_network(network)
    known = spec.get_params(deep=False)
    if not {"tokens", "output"} <= set(known) or not {"causal", "bidirectional"} & set(known):
        raise SpecError(f"network={spec!r}: {NEEDED}.")
    if known.get("causal"):
        raise SpecError(f"network={spec!r} does not look ahead; a masked language model needs causal=False.")
    changes: dict[str, Any] = {"tokens": symbols, "output": "each"}
    changes |= {name: value for name, value in (("bidirectional", True), ("longest", context)) if name in known}
    return spec.replace(**changes)


class MaskedModule(nn.Module):
    """Tokens as they are seen (n, t), and places with what was there (n, 2, k) → (t/m) log p of that, (n, k).

    m of t tokens are asked for, so a row adds up to an unbiased draw of Σₜ log p(zₜ | tokens not hidden); it is 0 where
    nothing is asked. With `pairs` the last place is a boundary, and log p is of whether what follows belongs there.

    >>> from likely.networks import GRU
    >>> module = MaskedModule(GRU(8), tokens=4, context=5)
    >>> module(torch.tensor([[3, 4, 1], [4, 1, -1]]), torch.tensor([[[1], [0]], [[0], [2]]])).shape
    torch.Size([2, 1])
    """

    def __init__(self, network: Any, tokens: int, context: int, *, pairs: bool = False) -> None:
        super().__init__()
        self.tokens, self.pairs = tokens, pairs
        self.network = two_sided_network(network, tokens + 1 + pairs, context).build((context,), tokens + pairs)
        if not hasattr(self.network, "hidden"):
            raise SpecError(f"network={network!r}: {NEEDED}.")

    def forward(self, x: Tensor, asked: Tensor) -> Tensor:
        places, wanted = asked.unbind(-2)
        eta = self._eta(x, places)
        words, answers = (wanted[..., :-1], wanted[..., -1:]) if self.pairs else (wanted, wanted[..., :0])
        length = ((x >= 0) & (x < self.tokens + 1)).sum(-1, keepdim=True)
        per_target = length / (words >= 0).sum(-1, keepdim=True).clamp_min(1)
        of_words = eta[..., : words.shape[-1], : self.tokens]
        flat = of_words.reshape(-1, self.tokens), words.reshape(-1)
        loss = functional.cross_entropy(*flat, ignore_index=ABSENT, reduction="none").view(words.shape)
        if not self.pairs:
            return -per_target * loss
        logit = eta[..., -1:, -1]
        follows = torch.where(answers < 0, 0.0, functional.logsigmoid(torch.where(answers == 1, logit, -logit)))
        return torch.cat([-per_target * loss, follows], -1)

    def hidden(self, x: Tensor) -> Tensor:
        """What the network makes of each token, (n, t, width); anything where there is none."""
        return self.network.hidden(x.clamp_min(0), x >= 0)  # type: ignore[operator]

    def at(self, x: Tensor, places: Tensor) -> Tensor:
        """log p of all tokens at one place of each row, (n, tokens)."""
        return self._eta(x, places.unsqueeze(-1))[:, 0, : self.tokens].log_softmax(-1)

    def total(self, x: Tensor) -> Tensor:
        """The sum of what the network makes of the tokens, (n, width)."""
        return torch.where((x >= 0).unsqueeze(-1), self.hidden(x), 0.0).sum(1)

    def follows(self, x: Tensor, boundary: Tensor) -> Tensor:
        """The log-odds that what comes after the boundary belongs there, (n,)."""
        return self._eta(x, boundary.unsqueeze(-1))[:, 0, -1]

    def _eta(self, x: Tensor, places: Tensor) -> Tensor:
        h = self.hidden(x)
        return self.network.read(h.gather(-2, places.unsqueeze(-1).expand(*places.shape, h.shape[-1])))  # type: ignore[operator]
