"""The module of a language model: a causal network over tokens, and log p of each token given those before it.

log p(zₜ₊₁ | z_≤t) = log softmax(network(z_≤t; θ))
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from ...networks import Network, as_network
from .windows import ABSENT

__all__ = ["LanguageModule", "causal_network"]

NEEDED = "LanguageModel needs NGram, or a network that goes through tokens: Transformer, RNN, GRU, LSTM or LRU"


def causal_network(network: Any, symbols: int, context: int) -> Network:
    """The network as a language model builds it: over tokens, causal, with an answer at each step.

    >>> from likely.networks import GRU
    >>> causal_network(GRU(8), 30, 64)
    GRU(hidden=8, output='each', tokens=30)
    """
    spec = as_network(network)
    known = spec.get_params(deep=False)
    if not {"tokens", "output"} <= set(known):
        raise SpecError(f"network={spec!r}: {NEEDED}.")
    if known.get("bidirectional"):
        raise SpecError(f"network={spec!r} looks ahead; a language model needs bidirectional=False.")
    changes: dict[str, Any] = {"tokens": symbols, "output": "each"}
    changes |= {name: value for name, value in (("causal", True), ("longest", context)) if name in known}
    return spec.replace(**changes)


class LanguageModule(nn.Module):
    """Windows of tokens (n, t + 1) → log p of the last t of them, (n, t), 0 where a window has none.

    >>> from likely.networks import GRU
    >>> LanguageModule(GRU(8), symbols=4, outputs=3, context=5)(torch.tensor([[3, 0, 1, 2], [3, 1, -1, -1]])).shape
    torch.Size([2, 3])
    """

    def __init__(self, network: Any, symbols: int, outputs: int, context: int) -> None:
        super().__init__()
        self.network = causal_network(network, symbols, context).build((context,), outputs)
        if not hasattr(self.network, "step"):
            raise SpecError(f"network={network!r}: {NEEDED}.")

    def forward(self, x: Tensor) -> Tensor:
        eta, following = self.network(x[..., :-1].clamp_min(0)), x[..., 1:]
        loss = functional.cross_entropy(eta.flatten(0, -2), following.flatten(), ignore_index=ABSENT, reduction="none")
        return -loss.view(following.shape)

    def last(self, x: Tensor, lengths: Tensor) -> Tensor:
        """log p of all that may follow the first so many tokens of each row, (n, outputs)."""
        eta = self.network(x.clamp_min(0))
        return eta[torch.arange(len(x), device=x.device), lengths - 1].log_softmax(-1)

    def start(self, rows: int) -> Any:
        """The state of the network before the first token of so many sequences."""
        return self.network.start(rows)  # type: ignore[operator]

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """log p of all that may follow these tokens (n,) and those before, (n, outputs), and the state after them."""
        eta, state = self.network.step(tokens, state)  # type: ignore[operator]
        return eta.log_softmax(-1), state
