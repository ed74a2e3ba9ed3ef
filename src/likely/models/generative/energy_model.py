"""EnergyModel: rows are probable where an energy is low, and training needs draws instead of the normaliser.

p(x) = exp(−F(x; θ)) / Z(θ),      ∇ log p(x) = −∇F(x) + E_p[∇F]

surrogate of a row:  F(x₋) − F(x),   x₋ draws of the model, held fixed: its gradient is the contrastive one
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.random import drawing
from ...core.spec import Spec, as_spec, is_integer, require
from ...inference import MAP, Inference
from ...inference.objective import Objective, RowDensity
from ...likelihoods import Bernoulli
from ...optim import Adam, Cosine
from ...priors import Flat
from .argument import Argument
from .base import BLOCK, LEAST, _Generative
from .module import DensityModule, ask
from .negatives import CD, PCD, Negatives
from .rbm import RBMModule, bernoulli

__all__ = ["RBM", "Energy", "EnergyModel"]

CHAINS = 100
"""Chains of annealed importance sampling, if no number is given."""
TEMPERATURES = 1000
"""Steps between independent columns and the model."""


class Energy(Spec, axis="energy"):
    """A function of rows whose negative is log p up to a constant."""

    def module(self, size: int) -> RBMModule:
        """Its parameters, for rows of so many numbers."""
        raise NotImplementedError(f"{type(self).__name__} must build its module")


class RBM(Energy):
    """The free energy of a restricted Boltzmann machine of binary rows.

    >>> RBM(16)
    RBM(hidden=16)
    """

    hidden: int = 64

    def validate(self) -> None:
        require(is_integer(self.hidden), self, "hidden", "a positive integer")

    def module(self, size: int) -> RBMModule:
        return RBMModule(size, self.hidden)


class EnergyModel(_Generative):
    """A density of binary rows by an energy; `negatives` is `PCD(steps)` or `CD(steps)`.

    log Z is exact where the smaller layer has 20 units or fewer; beyond, `log_prob` is an estimate by annealed
    importance sampling (`draws` chains), with its standard error. `free_energy` needs no log Z. New rows are the ends
    of Gibbs chains of `steps` steps.

    >>> rows = np.repeat([[0, 0, 1], [1, 1, 0]], 50, axis=0)
    >>> model = EnergyModel(RBM(4), PCD(1, chains=50), inference=MAP(Adam(0.05), epochs=30), random_state=0).fit(rows)
    >>> model.log_prob_kind_, bool(model.log_prob([[1, 1, 0]])[0] > model.log_prob([[1, 0, 0]])[0])
    ('exact', True)
    """

    energy = Argument("energy is the function that the model is made of; free_energy gives its values")

    def __init__(
        self,
        energy: Any = RBM(64),  # noqa: B008 (specs are frozen values)
        negatives: Any = PCD(1),  # noqa: B008
        steps: int = 200,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.energy = energy
        self.negatives = negatives
        self.steps = steps
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- what makes it an energy model --------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        self.__dict__.pop("_log_z", None)
        as_spec(vars(self)["energy"], Energy, "energy")
        as_spec(self.negatives, Negatives, "negatives")
        require(is_integer(self.steps), self, "steps", "a positive integer")

    @property
    def log_prob_kind_(self) -> str:  # type: ignore[override]
        """Exact where log Z is a sum over few states."""
        if "posterior_" not in self.__dict__:
            return "estimate"
        module = self.posterior_.module
        assert isinstance(module, EnergyModule)
        return "exact" if module.rbm.enumerable else "estimate"

    def _objective(self) -> Objective:
        return RowDensity(type(self).__name__, "bound", random=True)

    def _likelihood(self) -> Any:
        return Bernoulli()

    def _module(self) -> DensityModule:
        if self.condition_ is not None:
            raise DataError("EnergyModel takes no condition; let it be columns of X, and fix them in sample.")
        energy = as_spec(vars(self)["energy"], Energy, "energy")
        negatives = as_spec(self.negatives, Negatives, "negatives")
        return EnergyModule(self.form_.shape, energy, negatives, self.steps)

    def _automatic(self, rows: int) -> Inference:
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(2_000, 6_000 * batch // max(1, rows)))
        return MAP(Adam(5e-3), epochs=epochs, batch_size=batch, schedule=Cosine())

    # --- questions ----------------------------------------------------------------------------------------------
    def _draws(self, draws: int | None) -> int:
        if draws is None and self.log_prob_kind_ == "estimate":
            return CHAINS
        return super()._draws(draws)

    def log_normaliser(self, draws: int | None = None, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """log Z of each member of the posterior, and its standard error: 0 where it is exact."""
        self._asked(np.zeros((1, *self.form_.shape)), None)
        pairs = [
            self._log_z_of(member, self._draws(draws), self._seed_of_question(random_state, member))
            for member in range(len(self.posterior_))
        ]
        values, errors = zip(*pairs, strict=True)
        return np.array(values), np.array(errors)

    def _log_z_of(self, member: int, draws: int, seed: int) -> tuple[float, float]:
        """Found once for each number of chains and seed."""
        known = self.__dict__.setdefault("_log_z", {})
        key = (member, draws, seed)
        if key not in known:
            with drawing(seed):
                value, error = ask(self.posterior_, member, "log_normaliser", draws)
            known[key] = (float(value), float(error))
        return known[key]

    def _member_log_prob(
        self, member: int, x: Tensor, condition: Tensor | None, draws: int, seed: int
    ) -> tuple[Tensor, Tensor]:
        log_z, error = self._log_z_of(member, draws, seed)
        return -self._member_energy(member, x) - log_z, torch.full((len(x),), error, dtype=torch.float64)

    def _member_energy(self, member: int, x: Tensor) -> Tensor:
        step = max(LEAST, BLOCK // self._footprint()[1])
        return torch.cat([self._cpu(ask(self.posterior_, member, "free_energy", rows)) for rows in x.split(step)])

    def free_energy(self, X: Any) -> np.ndarray:
        """F(x) of each row, (n,); over the members of a posterior, their mean."""
        x, _ = self._asked(X, None)
        weights = self.posterior_.weights.double().tolist()
        return sum(weight * self._member_energy(member, x).numpy() for member, weight in enumerate(weights))


class EnergyModule(DensityModule):
    """The energy of rows, and the chains that its negatives and its draws come from."""

    chain: Tensor

    def __init__(self, shape: tuple[int, ...], energy: Energy, negatives: Negatives, steps: int) -> None:
        super().__init__()
        self.shape, self.negatives, self.steps = shape, negatives, steps
        size = math.prod(shape)
        self.rbm = energy.module(size)
        self.register_buffer("chain", torch.zeros(negatives.chains if isinstance(negatives, PCD) else 0, size))

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        flat = x.flatten(1).double()
        weights = torch.ones(len(flat), dtype=torch.float64) if weight is None else weight.double().cpu()
        mean = (weights @ flat + 0.5) / (weights.sum() + 1.0)
        self.rbm.adapt(mean.to(self.rbm.weight))
        self.chain.copy_(bernoulli(self.rbm.visible_bias.expand_as(self.chain)))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """F(x₋) − F(x) of each row, (n,)."""
        rows = x.flatten(1)
        if isinstance(self.negatives, CD):
            return self.rbm.free_energy(self.rbm.gibbs(rows, self.negatives.steps)) - self.rbm.free_energy(rows)
        negatives = self.rbm.gibbs(self.chain, self.negatives.steps)
        if self.training:
            self.chain.copy_(negatives)
        return self.rbm.free_energy(negatives).mean() - self.rbm.free_energy(rows)

    def free_energy(self, x: Tensor) -> Tensor:
        """F(x) of each row, (n,)."""
        return self.rbm.free_energy(x.flatten(1))

    def log_normaliser(self, chains: int) -> tuple[Tensor, Tensor]:
        """log Z and its standard error."""
        if self.rbm.enumerable:
            value = self.rbm.log_normaliser()
            return value, torch.zeros_like(value)
        return self.rbm.annealed_log_normaliser(chains, TEMPERATURES)

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        start = bernoulli(self.rbm.visible_bias.expand(count, -1))
        return self.rbm.gibbs(start, self.steps).unflatten(1, self.shape)

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """Gibbs sampling of the gaps, with the rest held."""
        rows = x.flatten(1).repeat(draws, 1)
        gaps = rows.isnan()
        state = torch.where(gaps, bernoulli(self.rbm.visible_bias.expand_as(rows)), rows)
        for _ in range(self.steps):
            state = torch.where(gaps, self.rbm.gibbs(state, 1), rows)
        return state.unflatten(1, self.shape).unflatten(0, (draws, len(x)))
