"""A trained language model: p averaged over the members of a posterior, by windows or step by step.

    p(z) = Σₛ wₛ Πₜ pₛ(zₜ₊₁ | z_a(t) … zₜ)

What is long is read by windows that overlap by half: a(t) = 0 while t < context C, and then it is the last multiple of
H = C/2 at which a window holds t. So every token is predicted from at least C/2 before it, and from C at most. Drawing
goes by the same rule, so draws have just the probabilities that `log_prob` tells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.threads import threads_for
from ...inference import Posterior
from ..generative.module import ask
from .members import Mixing
from .texts import sums
from .windows import ABSENT

__all__ = ["Trained", "window_starts"]

BLOCK = 1 << 15
"""Tokens whose probabilities are computed at once."""


class State(NamedTuple):
    """What is known of sequences so far, each row by itself; `held` tokens are in the states of the network."""

    held: int
    recent: Tensor
    """Tokens that a new window begins with, (n, up to context)."""
    mixing: Mixing
    networks: tuple[Any, ...]


class Trained:
    """What a language model with a network answers with; `work` is that of one token in its largest operation."""

    def __init__(self, posterior: Posterior, context: int, work: float = 0.0) -> None:
        self.posterior, self.context, self.work = posterior, context, work
        self.half = max(1, context // 2)

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.posterior.weights.device

    def _log_weights(self) -> Tensor:
        return self.posterior.weights.double().log()

    # --- whole texts --------------------------------------------------------------------------------------------
    def log_prob(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """log p of all symbols after the boundary, of each sequence: (n,)."""
        total = self._member_log_prob(values, offsets) + self._log_weights().cpu().unsqueeze(1)
        return torch.logsumexp(total, 0).numpy()

    def token_log_prob(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """log p of each symbol after the boundaries given those before it in its sequence; they sum to `log_prob`."""
        log_probs = self._member_token_log_prob(values, offsets).numpy()
        if len(log_probs) == 1:
            return log_probs[0]
        lengths = np.diff(offsets) - 1
        before = np.cumsum(log_probs, 1) - log_probs
        begins = np.minimum(np.cumsum(lengths) - lengths, log_probs.shape[1] - 1)
        before -= np.repeat(before[:, begins], lengths, axis=1)  # from the start of each sequence
        weight = before + self._log_weights().cpu().numpy()[:, None]
        return np.logaddexp.reduce(weight + log_probs, 0) - np.logaddexp.reduce(weight, 0)

    def _member_log_prob(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """log p of each sequence under each member, (members, n)."""
        log_probs = self._member_token_log_prob(values, offsets).numpy()
        return torch.from_numpy(np.stack([sums(own, offsets) for own in log_probs]))

    def _member_token_log_prob(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """log p of each symbol after the boundaries under each member, (members, symbols)."""
        members, lengths = len(self.posterior.weights), np.diff(offsets) - 1
        out = torch.zeros(members, int(lengths.sum()), dtype=torch.float64)
        width = min(self.context, int(lengths.max()))
        if width < 1:
            return out
        starts, scored, owner = window_starts(lengths, self.context)
        at = (offsets[owner] + starts)[:, None] + np.arange(width + 1)
        last = (offsets[owner + 1] - 1)[:, None]
        step = max(1, BLOCK // width)
        for first in range(0, len(starts), step):
            rows = slice(first, first + step)
            x = np.where(at[rows] <= last[rows], values[np.minimum(at[rows], last[rows])], ABSENT)
            windows = torch.from_numpy(x).to(self.device)
            new = (np.arange(width) >= scored[rows, None]) & (x[:, 1:] != ABSENT)  # others: for the window before
            place = torch.from_numpy((at[rows, :-1] - owner[rows, None])[new])  # as many boundaries are before it
            with threads_for(self.work * x.size):
                for member in range(members):
                    log_probs = ask(self.posterior, member, "forward", windows).cpu()
                    out[member, place] = log_probs[torch.from_numpy(new)].double()
        return out

    def following(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """log p of all that may come after each sequence, (n, outputs)."""
        ends = np.diff(offsets) - 1
        starts = np.where(ends < self.context, 0, ((ends - self.context) // self.half + 1) * self.half)
        lengths = ends - starts + 1
        at = (offsets[:-1] + starts)[:, None] + np.arange(lengths.max())
        x = torch.from_numpy(values[np.minimum(at, (offsets[1:] - 1)[:, None])]).to(self.device)
        many = len(self.posterior.weights)
        with threads_for(self.work * x.numel()):
            counts = torch.from_numpy(lengths).to(self.device)
            answers = [ask(self.posterior, member, "last", x, counts) for member in range(many)]
        if many == 1:
            return answers[0].double().cpu()
        weight = (self._member_log_prob(values, offsets) + self._log_weights().cpu().unsqueeze(1)).log_softmax(0)
        return torch.logsumexp(torch.stack(answers).double().cpu() + weight.unsqueeze(2), 0)

    # --- step by step -------------------------------------------------------------------------------------------
    def start(self, rows: int) -> State:
        """The state of so many sequences before their first token."""
        recent = torch.zeros(rows, 0, dtype=torch.long, device=self.device)
        return State(0, recent, Mixing.begun(self.posterior.weights, rows), self._fresh(rows))

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """log p of all that may follow these tokens (n,) and those before, (n, outputs), and the state after them."""
        held, networks, recent = state.held, state.networks, state.recent
        with threads_for(self.work * len(tokens)):
            if held == self.context:  # a new window begins with the second half of the old one
                recent = recent[:, self.half :]
                held, networks = 0, self._fresh(len(tokens))
                for past in recent.unbind(1):
                    _, networks = self._advance(past, networks)
                    held += 1
            log_probs, networks = self._advance(tokens, networks)
        recent = torch.cat([recent, tokens.unsqueeze(1)], 1)
        mixed, mixing = state.mixing.after(tokens, log_probs)
        return mixed, State(held + 1, recent, mixing, networks)

    def _fresh(self, rows: int) -> tuple[Any, ...]:
        return tuple(ask(self.posterior, member, "start", rows) for member in range(len(self.posterior.weights)))

    def _advance(self, tokens: Tensor, networks: tuple[Any, ...]) -> tuple[list[Tensor], tuple[Any, ...]]:
        pairs = [ask(self.posterior, member, "step", tokens, own) for member, own in enumerate(networks)]
        return [log_probs for log_probs, _ in pairs], tuple(own for _, own in pairs)


def window_starts(lengths: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows of texts with so many tokens to predict: where each starts, how many it only reads, and its text.

    >>> [part.tolist() for part in window_starts(np.array([9, 2]), 4)]
    [[0, 2, 4, 6, 0], [0, 2, 2, 2, 0], [0, 0, 0, 0, 1]]
    """
    half = max(1, context // 2)
    count = 1 + np.maximum(0, -(-(lengths - context) // half))
    owner = np.repeat(np.arange(len(lengths)), count)
    number = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
    return number * half, np.where(number > 0, context - half, 0), owner
