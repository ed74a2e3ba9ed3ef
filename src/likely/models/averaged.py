"""Models whose parameters may be many draws: questions about rows are answered by their average.

p(x | data) ≈ Σₛ wₛ p(x | θₛ)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.declared import TABLE, Value
from ..core.errors import ModelFileError
from ..core.learned import Learned
from ..core.random import spread
from ..inference.latent.latent import LatentFit, Params

__all__ = ["INFO", "Averaged"]

WEIGHTS = "member_weights"
REPORTED = ("acceptance", "step_size", "divergences", "rhat", "rhat_of", "ess")
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
