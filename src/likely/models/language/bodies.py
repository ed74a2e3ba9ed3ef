"""The bodies of an encoder–decoder: what reads the source, and what writes the target while it looks at what was read.

    m = encoder(source),   h_t = decoder(y_<t, m)

Any encoder goes with any decoder: what is between them is a sequence of states m (n, s, width).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from ...core.errors import SpecError
from ...networks.base import Network, as_network, refuse_absurd
from ...networks.gru import GRU
from ...networks.layers.attentive import AttentiveDecoder
from ...networks.layers.dropout import Dropout
from ...networks.layers.encoder import Encoder
from ...networks.layers.recurrent import RecurrentLayer
from ...networks.lstm import LSTM
from ...networks.rnn import RNN
from ...networks.transformer import MOST_WEIGHTS, Transformer, encoder_weights

__all__ = ["Writer", "body_of", "reader_of", "refuse_weights", "width_of", "writer_of"]

KNOWN = (Transformer, RNN, GRU, LSTM)


class Writer(Protocol):
    """What a decoder does: whole targets at once, or step by step."""

    width: int

    def __call__(self, x: Tensor, context: Tensor, seen: Tensor) -> Tensor:
        """h at all steps of x (n, t, d), of which each sees those before it."""
        ...

    def weights(self, x: Tensor, context: Tensor, seen: Tensor) -> Tensor:
        """How much each step looks at each of the source, (n, t, s)."""
        ...

    def looked_at(self, context: Tensor) -> Any:
        """What is made once of the states of the source."""
        ...

    def start(self, context: Tensor, seen: Tensor) -> Any:
        """The state before the first step."""
        ...

    def step(self, x: Tensor, state: Any, looked_at: Any, seen: Tensor) -> tuple[Tensor, Any]:
        """h of one more step (n, d), and the state after it."""
        ...


def body_of(network: Any, name: str) -> Network:
    """The spec of a body, which `Seq2Seq` knows how to build.

    >>> body_of("gru(hidden=8)", "encoder")
    GRU(hidden=8)
    """
    spec = as_network(network)
    if not isinstance(spec, KNOWN):
        raise SpecError(f"{name}={spec!r}: Seq2Seq needs a Transformer, an RNN, a GRU or an LSTM.")
    if name == "decoder" and getattr(spec, "bidirectional", False):
        raise SpecError(f"decoder={spec!r} looks ahead; a decoder needs bidirectional=False.")
    return spec


def width_of(spec: Any) -> int:
    """How wide the vectors of tokens are that a body takes.

    >>> width_of(GRU(8)), width_of(Transformer(16, join="concatenate"))
    (8, 8)
    """
    if isinstance(spec, Transformer):
        return spec.width - spec.width // 2 if spec.join == "concatenate" else spec.width
    return int(spec.hidden)


def refuse_weights(spec: Any, symbols: int, longest: int) -> None:
    """A slip of the keyboard, or a file that means harm, should not fill the memory."""
    if isinstance(spec, Transformer):
        refuse_absurd(spec, 2 * encoder_weights(spec, 2 * symbols + (spec.longest or longest)), MOST_WEIGHTS)
        return
    given = spec.hidden * (2 if spec.bidirectional else 1)
    refuse_absurd(spec, 2 * symbols * spec.hidden + 4 * given * (spec.hidden + given) * spec.layers)


def reader_of(spec: Any, longest: int) -> tuple[nn.Module, int]:
    """The encoder of a spec, vectors (n, s, d) and which there are → states (n, s, width), and that width."""
    if isinstance(spec, Transformer):
        return _encoder(spec, longest, causal=False), spec.width
    return Reader(_layers(spec), spec.dropout), spec.hidden * (2 if spec.bidirectional else 1)


def writer_of(spec: Any, longest: int, context: int, score: str) -> Writer:
    """The decoder of a spec, which looks at states of this width."""
    if isinstance(spec, Transformer):
        return CrossDecoder(_encoder(spec, longest, causal=True, context=context, cross=score))
    return AttentiveDecoder(_layers(spec), context, score, spec.dropout)


class Reader(nn.Module):
    """Recurrent layers over steps, one above the other, with dropout after each: (n, s, d) → (n, s, width)."""

    def __init__(self, layers: Sequence[RecurrentLayer], dropout: float) -> None:
        super().__init__()
        self.layers, self.dropout = nn.ModuleList(layers), Dropout(dropout)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.dropout(layer(x, present))
        return x


class CrossDecoder(nn.Module):
    """The decoder of a transformer: causal blocks that look at the source as well."""

    def __init__(self, blocks: Encoder) -> None:
        super().__init__()
        self.blocks, self.width = blocks, blocks.width

    def forward(self, x: Tensor, context: Tensor, seen: Tensor) -> Tensor:
        return self.blocks(x, context=self.blocks.looked_at(context), seen=seen)

    def weights(self, x: Tensor, context: Tensor, seen: Tensor) -> Tensor:
        """The mean over the heads of the last block."""
        return self.blocks.cross_weights(x, context, seen).mean(1)

    def looked_at(self, context: Tensor) -> Any:
        """Keys and values for each block."""
        return self.blocks.looked_at(context)

    def start(self, context: Tensor, seen: Tensor) -> Any:
        """No step is there yet."""
        return self.blocks.start(len(context))

    def step(self, x: Tensor, state: Any, looked_at: Any, seen: Tensor) -> tuple[Tensor, Any]:
        """h of one more step, whose keys and values are kept."""
        return self.blocks.step(x, state, context=looked_at, seen=seen)


def _layers(spec: Any) -> list[RecurrentLayer]:
    given = spec.hidden * (2 if spec.bidirectional else 1)
    return [spec._layer(given if number else spec.hidden) for number in range(spec.layers)]


def _encoder(spec: Transformer, longest: int, **more: Any) -> Encoder:
    names = ("width", "heads", "layers", "hidden", "norm", "positions", "join", "attention", "score", "dropout")
    own = {name: getattr(spec, name) for name in (*names, "activation", "bias")}
    return Encoder(**own, longest=spec.longest or longest, output="each", **more)
