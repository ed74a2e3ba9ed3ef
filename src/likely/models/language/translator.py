"""What a fitted encoder–decoder answers with: p(target | source) averaged over the members of a posterior.

p(y | x) = Σₛ wₛ Πₜ pₛ(yₜ | y_<t, x)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.threads import threads_for
from ...data.rows import Ragged
from ...decoding import Decoded, Decoding
from ...inference import Posterior
from ..generative.module import ask
from .members import Mixing
from .pairs import padded
from .seq2seq_module import Read

__all__ = ["Translator"]

BLOCK = 1 << 13
"""Tokens of targets whose probabilities are computed at once, more or less."""
CHOICES = 1 << 19
"""Probabilities of next tokens that are looked at together, more or less."""
TOGETHER = 256
"""Sources that are decoded together, at most."""


class Kept:
    """What each member keeps of the sources: one object for all rows, which hypotheses are not copied with."""

    def __init__(self, read: list[Read]) -> None:
        self.read = read

    def of(self, owner: Tensor) -> list[Read]:
        """What the rows of these sources look at; as it is where every source has as many rows, in its order."""
        sources = len(self.read[0].seen)
        number = torch.arange(sources, device=owner.device)
        if len(owner) % sources == 0 and torch.equal(owner, number.repeat_interleave(len(owner) // sources)):
            return self.read
        return [_selected(own, owner) for own in self.read]


class State(NamedTuple):
    """What is known of targets so far, each row by itself; `owner` is the source of each."""

    owner: Tensor
    mixing: Mixing
    networks: tuple[Any, ...]
    kept: Kept


class Translator:
    """log p, decoding and attention; `work` is that of one token in the largest operation of the network."""

    def __init__(self, posterior: Posterior, outputs: int, work: float = 0.0) -> None:
        self.posterior, self.outputs, self.work = posterior, outputs, work

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.posterior.weights.device

    # --- whole targets ------------------------------------------------------------------------------------------
    def log_prob(self, sources: Ragged, targets: Ragged) -> np.ndarray:
        """log p of each target, its end included, given its source: (n,)."""
        members = len(self.posterior.weights)
        total = torch.empty(members, len(targets), dtype=torch.float64)
        lengths = targets.lengths + sources.lengths
        order = lengths.argsort(stable=True)
        step = max(1, BLOCK // int(lengths.max()))
        for rows in order.split(step):
            x, condition = padded(targets[rows]), padded(sources[rows])
            with threads_for(self.work * x.numel()):
                for member in range(members):
                    total[member, rows.cpu()] = ask(self.posterior, member, "log_prob", x, condition).double().cpu()
        return torch.logsumexp(total + self.posterior.weights.double().log().cpu().unsqueeze(1), 0).numpy()

    def attention(self, source: Ragged, target: Ragged) -> np.ndarray:
        """How much each token of one target looks at each of its source, (t, s): the mean over members."""
        x, condition = padded(target), padded(source)
        maps = [
            ask(self.posterior, member, "attention", x, condition)[0] for member in range(len(self.posterior.weights))
        ]
        weights = self.posterior.weights.to(maps[0].dtype)
        return torch.einsum("m,mts->ts", weights, torch.stack(maps)).double().cpu().numpy()

    # --- step by step -------------------------------------------------------------------------------------------
    def start(self, sources: Tensor) -> State:
        """The state of one target for each source (n, s), before its first token."""
        pairs = [ask(self.posterior, member, "read", sources) for member in range(len(self.posterior.weights))]
        owner = torch.arange(len(sources), device=sources.device)
        mixing = Mixing.begun(self.posterior.weights, len(sources))
        return State(owner, mixing, tuple(state for state, _ in pairs), Kept([read for _, read in pairs]))

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """log p of all that may follow these tokens (n,) and those before, (n, outputs), and the state after them."""
        read = state.kept.of(state.owner)
        with threads_for(self.work * len(tokens)):
            pairs = [
                ask(self.posterior, member, "step", tokens, own, read[member])
                for member, own in enumerate(state.networks)
            ]
        mixed, mixing = state.mixing.after(tokens, [log_probs for log_probs, _ in pairs])
        return mixed, State(state.owner, mixing, tuple(own for _, own in pairs), state.kept)

    def decoded(self, sources: Ragged, way: Decoding, length: int) -> list[np.ndarray]:
        """The tokens of a target for each source, with the end where one was chosen within `length` tokens."""
        order = sources.lengths.argsort(stable=True)
        together = min(TOGETHER, max(1, CHOICES // self.outputs))
        answers: list[np.ndarray] = [np.zeros(0, np.int64)] * len(sources)
        boundary = self.outputs - 1
        for rows in order.split(together):
            first = torch.full((len(rows),), boundary, device=self.device)
            start = self.start(padded(sources[rows]))
            decoding: Decoded = way.decode(self.step, start, first, length, end=boundary)
            for row, tokens in zip(rows.tolist(), decoding.tokens.cpu().numpy(), strict=True):
                answers[row] = tokens[tokens >= 0]
        return answers


def _selected(read: Any, rows: Tensor) -> Any:
    """Some rows of all tensors in a nest of tuples."""
    if isinstance(read, Tensor):
        return read.index_select(0, rows)
    parts = [_selected(part, rows) for part in read]
    return type(read)(*parts) if hasattr(read, "_fields") else tuple(parts)
