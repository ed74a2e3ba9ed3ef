"""What decoding is: a way to choose tokens one after the other, by their probabilities given those before.

    log p(y₁ … y_T) = Σₜ log p(yₜ | y_<t),      (log p( · | y_≤t), state) = step(state, yₜ)

Rows are decoded together: a Python loop goes over steps, never over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.spec import Spec, is_integer

__all__ = ["Decoded", "Decoding", "Plan", "Step", "taken"]

Step = Callable[[Any, Tensor], tuple[Tensor, Any]]
"""(state, tokens just taken (n,)) → (log-probabilities of what comes next (n, V), state). A state is a tensor whose
first axis is rows, or a tuple, list or dict of such; whatever else it holds is of all rows."""

NONE = -1
"""Where a row has no token."""


class Decoded(NamedTuple):
    """Sequences: `tokens` (n, steps), −1 after the end of each, and Σ log p of those that were chosen, (n,) of float64.

    >>> from likely.decoding import Greedy
    >>> step = lambda state, tokens: (torch.tensor([[0.25, 0.75]]).log().expand(len(tokens), 2), state)
    >>> Greedy().decode(step, (), torch.tensor([0]), length=2)
    Decoded(tokens=tensor([[1, 1]]), log_prob=tensor([-0.5754], dtype=torch.float64))
    """

    tokens: Tensor
    log_prob: Tensor


class Decoding(Spec, axis="decoding"):
    """How tokens are chosen. A way of your own only needs `run`."""

    def decode(
        self,
        step: Step,
        state: Any,
        first: Tensor,
        length: int,
        *,
        end: int | None = None,
        prompt: Tensor | None = None,
    ) -> Decoded:
        """Up to `length` new tokens for each row: fewer where the token `end` is chosen, which ends a row.

        `first` (n,) is the token before the first one. `prompt` (n, p) has the tokens that each row begins with, and
        −1 after them; they are part of the answer, but not of its log-probability.
        """
        if not is_integer(length):
            raise DataError(f"length={length!r}: how many tokens to choose must be an integer above 0.")
        known = first.new_full((len(first), 0), NONE) if prompt is None else prompt
        plan = Plan(known, (known != NONE).sum(1) + length, end)
        common = int((known != NONE).sum(1).min()) if known.shape[1] else 0
        for t in range(common):  # what all rows are told needs no choice
            _, state = step(state, first)
            first = known[:, t]
        return self.run(step, state, first, plan, common)

    def run(self, step: Step, state: Any, first: Tensor, plan: Plan, at: int) -> Decoded:
        """The rest of a plan, of whose steps `at` are done."""
        raise NotImplementedError(f"{type(self).__name__} must implement how tokens are chosen")


class Plan(NamedTuple):
    """What is known of the rows before any token is chosen: their prompts (n, p), and at how many tokens each stops."""

    prompt: Tensor
    limit: Tensor
    end: int | None

    @property
    def steps(self) -> int:
        """Until the last row stops."""
        return int(self.limit.max())

    @property
    def free(self) -> range:
        """The steps at which all rows choose: none, where a row may end at any."""
        return range(self.prompt.shape[1], int(self.limit.min()) if self.end is None else 0)

    def repeated(self, count: int) -> Plan:
        """The plan of so many hypotheses for each row."""
        return Plan(self.prompt.repeat_interleave(count, 0), self.limit.repeat_interleave(count), self.end)

    def begun(self, at: int) -> Tensor:
        """The tokens of all rows, (n, steps): the first `at` of the prompts."""
        tokens = self.prompt.new_full((len(self.prompt), self.steps), NONE)
        tokens[:, :at] = self.prompt[:, :at]
        return tokens

    def told(self, t: int, ended: Tensor) -> tuple[Tensor, Tensor]:
        """What is to be taken as token t, −1 where it is free to choose, and which rows are done: those take a 0."""
        done = ended | (self.limit <= t)
        if t >= self.prompt.shape[1]:
            return torch.where(done, 0, NONE), done
        return torch.where(done, 0, self.prompt[:, t]), done


def taken(state: Any, rows: Tensor) -> Any:
    """The state of some rows, by their numbers.

    >>> taken((2, torch.tensor([[1.0], [2.0]])), torch.tensor([1, 1]))
    (2, tensor([[2.],
            [2.]]))
    """
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return {name: taken(part, rows) for name, part in state.items()}
    if isinstance(state, list | tuple):
        parts = [taken(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return state


def follow(choose: Callable[[Tensor], Tensor], step: Step, state: Any, last: Tensor, plan: Plan, at: int) -> Decoded:
    """One path for each row: at each step the token that `choose` takes by the log-probabilities (n, V) → (n,)."""
    tokens, ended = plan.begun(at), torch.zeros_like(last, dtype=torch.bool)
    total = torch.zeros(len(last), dtype=torch.float64, device=last.device)
    free_to_choose = plan.free
    for t in range(at, plan.steps):
        log_probs, state = step(state, last)
        if t in free_to_choose:
            last = choose(log_probs)
            total += log_probs.gather(1, last.unsqueeze(1)).squeeze(1)
            tokens[:, t] = last
            continue
        told, done = plan.told(t, ended)
        free = told == NONE
        last = torch.where(free, choose(log_probs), told)
        gain = log_probs.gather(1, last.unsqueeze(1)).squeeze(1).double()
        total += torch.where(free, gain, 0.0)
        tokens[:, t] = torch.where(done, NONE, last)
        if plan.end is not None:
            ended |= free & (last == plan.end)
            if bool((ended | (plan.limit <= t + 1)).all()):
                break
    return Decoded(_cut(tokens), total)


def told_alone(log_probs: Tensor, told: Tensor) -> Tensor:
    """Log-probabilities (n, V) where a token that is told is sure: 0 for it, and −∞ for all others."""
    free = (told == NONE).unsqueeze(1)
    if bool(free.all()):
        return log_probs
    sure = torch.full_like(log_probs, -torch.inf).scatter_(1, told.clamp_min(0).unsqueeze(1), 0.0)
    return torch.where(free, log_probs, sure)


class Paths(NamedTuple):
    """Several hypotheses for each of n rows, one row after the other: (n·k, …)."""

    tokens: Tensor
    score: Tensor
    """Σ log p so far, in float64."""
    chosen: Tensor
    """How many tokens were chosen, the end included."""
    ended: Tensor

    @staticmethod
    def begun(plan: Plan, at: int) -> Paths:
        """One for each row, in which nothing is chosen."""
        rows = len(plan.prompt)
        zero = plan.prompt.new_zeros(rows)
        return Paths(plan.begun(at), zero.double(), zero, zero.bool())

    def taken(self, rows: Tensor) -> Paths:
        """Some of them, by their numbers."""
        return Paths(*(part.index_select(0, rows) for part in self))

    def extended(self, t: int, tokens: Tensor, score: Tensor, told: Tensor, done: Tensor, end: int | None) -> Paths:
        """Each with one more token; those that are done stay as they are."""
        free = told == NONE
        longer = self.tokens.clone()
        longer[:, t] = torch.where(done, NONE, tokens)
        ended = self.ended if end is None else self.ended | (free & (tokens == end))
        return Paths(longer, score, self.chosen + free, ended)

    def merit(self, length_penalty: float) -> Tensor:
        """Σ log p / lengthᵃ, by which hypotheses are compared."""
        return merit(self.score, self.chosen, length_penalty)

    def best(self, rows: int, length_penalty: float) -> Decoded:
        """The best hypothesis of each row."""
        merits = self.merit(length_penalty).view(rows, -1)
        place = merits.argmax(1) + torch.arange(rows, device=merits.device) * merits.shape[1]
        return Decoded(_cut(self.tokens[place]), self.score[place])


def merit(score: Tensor, chosen: Tensor, length_penalty: float) -> Tensor:
    """Σ log p / lengthᵃ: the mean of log p for a = 1, and log p itself for a = 0.

    >>> merit(torch.tensor([-4.0, -2.0]), torch.tensor([4, 1]), 1.0)
    tensor([-1., -2.])
    """
    return score if length_penalty == 0 else score / chosen.clamp_min(1) ** length_penalty


def _cut(tokens: Tensor) -> Tensor:
    """Without the steps at which no row has a token."""
    return tokens[:, : int((tokens != NONE).any(0).sum())]
