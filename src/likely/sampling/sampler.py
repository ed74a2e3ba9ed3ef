"""What a Markov chain Monte Carlo method promises: pure functions over an explicit state, all chains at once.

    init(position, log_prob)          → state                 (chains, *event) → the state before the first step
    step(state, log_prob, generator)  → state, info           one transition that leaves exp(log_prob) invariant
    adapt(state, info, index, total)  → state                 after step `index` of `total` warm-up steps

To add a method: a file in this room with a subclass of `Sampler` (its fields are what a person chooses) that defines
`init` and `step`, and `adapt` if there is something to tune. Rules that keep it correct and fast:

- Chains are the first axis of every tensor; no loop over chains. `log_prob` is always asked about all chains together,
  row c being chain c, and its answer is already checked. It may be differentiated through.
- Randomness comes from `generator` only: the same seed gives the same bits.
- What warm-up learns (step sizes, scales) lives in `state.tuning`. `step` never changes it, so that the chain is
  Markov after warm-up; `adapt` may, and at `index == total − 1` leaves the values that the draws will use. A method
  that needs more in its state (a gradient, say) extends `State`.
- A method that follows gradients cannot see a boundary: it sets `unbounded`, and is then given positions on the whole
  real line (see `constrained`) where the target is known to live on a part of it.
- What happened (acceptance, divergences, energies) goes to `info`; `info.stats` is recorded for every draw and handed
  to ArviZ by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.spec import Spec
from .density import LogDensity

__all__ = ["Info", "Sampler", "State"]


@dataclass(frozen=True)
class State:
    """Where the chains are: position (chains, *event), its log-density (chains,), and what warm-up has learned.

    >>> State(position=torch.zeros(4, 2), log_prob=torch.zeros(4)).position.shape  # four chains in the plane
    torch.Size([4, 2])
    """

    position: Tensor
    log_prob: Tensor
    tuning: Any = None


@dataclass(frozen=True)
class Info:
    """What happened in a step: the probability (chains,) with which it was accepted, and anything else by name.

    >>> Info(acceptance=torch.ones(4), stats={"energy": torch.zeros(4)}).stats["energy"].shape
    torch.Size([4])
    """

    acceptance: Tensor
    stats: Mapping[str, Tensor] = field(default_factory=dict)


class Sampler(Spec, axis="sampler"):
    """A way to move chains so that exp(log_prob) stays their distribution.

    >>> from likely.sampling import Info, Sampler, State, sample
    >>> class _Flip(Sampler):  # x → −x leaves every symmetric density invariant, though it visits two points only
    ...     def step(self, state, log_prob, generator):
    ...         return State(-state.position, state.log_prob), Info(torch.ones(len(state.position)))
    >>> sample(torch.distributions.Normal(0.0, 1.0), 1.5, _Flip(), draws=3, warmup=0, chains=1).draws
    tensor([[-1.5000,  1.5000, -1.5000]], dtype=torch.float64)
    """

    unbounded: ClassVar[bool] = False

    def init(self, position: Tensor, log_prob: LogDensity) -> State:
        """The state before the first step."""
        return State(position, log_prob(position))

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        """One transition of every chain."""
        raise NotImplementedError

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        """The state with better tuning, after step `index` of `total` in warm-up."""
        return state
