"""Models whose parameters may be many draws: questions about rows are answered by their average.

p(x | data) ≈ Σₛ wₛ p(x | θₛ)
E[missing | seen] = Σₛ wₛ(seen) E[missing | seen, θₛ],      wₛ(seen) ∝ wₛ p(seen | θₛ)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.declared import TABLE, Range, Value
from ..core.errors import DataError, ModelFileError
from ..core.learned import Learned
from ..core.random import spread
from ..data.rows import Ragged, index_of_parts
from ..inference.latent.latent import LatentFit, Params

__all__ = ["INFO", "Averaged", "by_member", "completed", "side_by_side", "weights_given"]

WEIGHTS = "member_weights"
NEGLIGIBLE = 1e-12
"""A draw whose weights are all below this has no part in an average."""
REPORTED = ("acceptance", "step_size", "divergences", "rhat", "rhat_of", "agree", "ess")
"""What an inference tells that a person would ask about."""
INFO = {"info_": Value(TABLE.words, TABLE.holds, optional=True)}


class Averaged(Learned):
    """What `fit` learned is one set of parameters, or `draws_`: sets θₛ (S, …) by name, that answers average over.

    Then the other attributes are those of the most probable draw, and so is what they say of hidden variables: the
    labels of components mean something within a draw only. `info_` tells R-hat, ESS and the like.
    """

    draws_: dict[str, np.ndarray] | None
    info_: dict[str, Any]

    def _point(self) -> Params:
        """The parameters of the best draw, as `draws_` names them."""
        raise NotImplementedError

    def _draw_ranges(self) -> Mapping[str, Range]:
        """What each parameter of a draw must be, where finite is not enough: as of the arrays of one fit."""
        return {}

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("draws_", None)

    def _keep_draws(self, fit: LatentFit) -> None:
        self.draws_ = None if fit.members is None else {name: value.numpy() for name, value in fit.members.items()}
        if fit.posterior is not None:
            self.info_ = {name: fit.posterior.info[name] for name in REPORTED if name in fit.posterior.info}

    def _draws(self) -> tuple[Params, Tensor] | None:
        """All draws θ (S, …) and the logarithms of their weights; None if there is only one."""
        if self.__dict__.get("draws_") is None:
            return None
        assert self.draws_ is not None
        tensors = {name: torch.from_numpy(value) for name, value in self.draws_.items()}
        return tensors, tensors.pop(WEIGHTS).log()

    def _members_of(self, count: int, seed: int) -> Tensor | None:
        """Which draw each of so many new rows comes from; None if there is only one."""
        draws = self._draws()
        if draws is None:
            return None
        generator = torch.Generator().manual_seed(spread(seed, 3)[2])
        return torch.multinomial(draws[1].exp(), count, replacement=True, generator=generator)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        values, tensors = super()._state()
        draws = self.__dict__.get("draws_") or {}
        return values, tensors | {f"draws.{name}": torch.from_numpy(value) for name, value in draws.items()}

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        own = {name: value for name, value in tensors.items() if name.startswith("draws.")}
        super()._restore(learned, {name: value for name, value in tensors.items() if name not in own})
        draws = {name.removeprefix("draws."): value.numpy() for name, value in own.items()}
        self.draws_ = draws or None
        if draws:
            self._check_draws(draws)

    def _check_draws(self, draws: Mapping[str, np.ndarray]) -> None:
        point = {name: tuple(value.shape) for name, value in self._point().items()}
        weights = draws.get(WEIGHTS, np.empty(0))
        sound = weights.ndim == 1 and len(weights) > 0 and bool((weights >= 0).all())
        sound = sound and abs(float(weights.sum()) - 1) < 1e-6 and set(draws) == {*point, WEIGHTS}
        for name, shape in point.items():
            value = draws.get(name)
            sound = sound and value is not None and value.shape == (len(weights), *shape)
            sound = sound and value is not None and value.dtype == np.float64 and bool(np.isfinite(value).all())
        if not sound:
            raise ModelFileError(f"The file does not fit {type(self).__name__}: its draws are not those of its model.")
        for name, needs in self._draw_ranges().items():
            if not needs.holds(draws[name]):
                owner = type(self).__name__
                raise ModelFileError(f"{owner}'s draws of {name} in this file must each be {needs.words}.")


def weights_given(log_prob: Tensor, log_weights: Tensor) -> Tensor:
    """wₛ(x) ∝ wₛ p(x | θₛ) from log p (n, S): how much each draw counts for a row of which x is seen.

    >>> weights_given(torch.tensor([[0.0, 0.0]]), torch.tensor([0.25, 0.75]).log())
    tensor([[0.2500, 0.7500]])
    """
    joint = log_prob + log_weights
    impossible = (joint == -torch.inf).all(-1)
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0])
        raise DataError(f"row {row} of X has probability 0, so that nothing is known of what it misses.")
    return joint.softmax(-1)


def side_by_side(members: Params) -> Params:
    """The components (S, K, …) of all draws as one list (S·K, …); what components share, (S, 1, …), is repeated.

    >>> side_by_side({"mean": torch.zeros(2, 3, 1), "covariance": torch.ones(2, 1, 1)})["covariance"].shape
    torch.Size([6, 1])
    """
    count = max(value.shape[1] for name, value in members.items() if name != "mixing")
    wide = {n: v if n == "mixing" else v.expand(-1, count, *v.shape[2:]) for n, v in members.items()}
    return {name: value.flatten(0, 1) for name, value in wide.items()}


def by_member(weights: Tensor, count: int, seed: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Draws that rows (n, S) are to be completed by, `count` times each: the member, which times, which rows."""
    generator = torch.Generator().manual_seed(spread(seed, 4)[3])
    chosen = torch.multinomial(weights, count, replacement=True, generator=generator).T  # (count, n)
    for member in chosen.unique().tolist():
        times, rows = (chosen == member).nonzero(as_tuple=True)
        yield member, times, rows


def completed(
    rows: Ragged, weights: Tensor, count: int, seed: int, fill: Callable[[int, Ragged], np.ndarray]
) -> np.ndarray:
    """`count` completions (count, T, d) of sequences; `fill(member, some)` draws what some of them miss, (T′, d)."""
    out = np.empty((count, *rows.values.shape))
    for member, times, chosen in by_member(weights, count, seed):
        positions, offsets = index_of_parts(rows.offsets, chosen)
        out[np.repeat(times.numpy(), offsets.diff().numpy()), positions.numpy()] = fill(member, rows[chosen])
    return out
