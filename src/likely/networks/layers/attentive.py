"""A recurrent decoder with attention: at each step it looks at another sequence, by what its state asks for.

    h_t = cell(x_t, h_{t−1}),   c_t = Σ_s a_ts m_s,   a_t· = softmax_s score(h_t, m_s),   out_t = tanh(W [h_t, c_t] + b)

m are the states of an encoder, brought to the width of the decoder. The states before the first step are an affine map
of their mean, through tanh. What is looked at does not enter the recurrence, so whole sequences run as one operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .attention import attend, attention_weights, score_of
from .dropout import Dropout
from .init import lecun
from .recurrent import RecurrentLayer, State
from .steps import pooled

__all__ = ["AttentiveDecoder"]


class AttentiveDecoder(nn.Module):
    """Recurrent layers over steps (n, t, d), and attention to another sequence with `context` features: (n, t, hidden).

    `score` is "scaled", "dot", "general" or "additive". Dropout follows each layer and the last map, in training.

    >>> from likely.networks.layers.recurrent import GRULayer
    >>> decoder = AttentiveDecoder([GRULayer(3, 4)], context=6, score="additive")
    >>> decoder(torch.zeros(2, 5, 3), torch.zeros(2, 7, 6)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(
        self, layers: Sequence[RecurrentLayer], context: int, score: str = "scaled", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.width, self.states = layers[0].ahead.hidden, layers[0].ahead.states
        self.memory = None if context == self.width else _affine(context, self.width)
        self.first = _affine(context, len(layers) * self.states * self.width)
        self.score = score_of(score, self.width)
        self.out = _affine(2 * self.width, self.width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, context: Tensor, seen: Tensor | None = None) -> Tensor:
        """`context` is (n, s, …), and `seen` says which of its steps there are, (n, s)."""
        return self._answer(self._through(x, context, seen), self.looked_at(context), seen)

    def weights(self, x: Tensor, context: Tensor, seen: Tensor | None = None) -> Tensor:
        """How much each step looks at each of the other sequence: (n, t, s)."""
        return attention_weights(
            self._through(x, context, seen), self.looked_at(context), _at_all_steps(seen), self.score
        )

    def looked_at(self, context: Tensor) -> Tensor:
        """m, (n, s, hidden): it is the same at all steps."""
        return context if self.memory is None else self.memory(context)

    def start(self, context: Tensor, seen: Tensor | None = None) -> tuple[State, ...]:
        """The states of all layers before the first step."""
        parts = self.first(pooled(context, seen, "mean")).tanh().split(self.width, -1)
        return tuple(parts[at : at + self.states] for at in range(0, len(parts), self.states))

    def step(
        self, x: Tensor, state: tuple[State, ...], looked_at: Tensor, seen: Tensor | None = None
    ) -> tuple[Tensor, tuple[State, ...]]:
        """The output (n, hidden) of one step (n, d), and the states after it.

        x may have several rows for each row of what is looked at, one after the other: (n·k, d).
        """
        h, after = x, []
        for layer, before in zip(self.layers, state, strict=True):
            out, now = layer.step(h, before)  # type: ignore[operator]
            h = self.dropout(out)
            after.append(now)
        together = h.view(len(looked_at), -1, self.width)
        return self._answer(together, looked_at, seen).view(h.shape), tuple(after)

    def _through(self, x: Tensor, context: Tensor, seen: Tensor | None) -> Tensor:
        for layer, before in zip(self.layers, self.start(context, seen), strict=True):
            x = self.dropout(layer(x, state=before))
        return x

    def _answer(self, h: Tensor, looked_at: Tensor, seen: Tensor | None) -> Tensor:
        context = attend(h, looked_at, looked_at, _at_all_steps(seen), self.score)
        return self.dropout(self.out(torch.cat([h, context], -1)).tanh())


def _at_all_steps(seen: Tensor | None) -> Tensor | None:
    return None if seen is None else seen.unsqueeze(1)


def _affine(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    lecun(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
