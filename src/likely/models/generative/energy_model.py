"""EnergyModel: rows are probable where an energy is low, and training needs draws instead of the normaliser.

p(x) = exp(−F(x; θ)) / Z(θ),      ∇ log p(x) = −∇F(x) + E_p[∇F]

surrogate of a row:  F(x₋) − F(x),   x₋ draws of the model, held fixed: its gradient is the contrastive one
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core.errors import DataError, SpecError
from ...core.random import drawing
from ...core.spec import Spec, as_spec, is_integer, registered, require
from ...inference import MAP, Inference
from ...inference.objective import Objective, RowDensity
from ...likelihoods import Bernoulli, Normal
from ...networks import Network, as_network
from ...optim import Adam, Cosine
from ...priors import Flat
from .argument import Argument
from .base import _Generative
from .constants import warn_of_constants
from .energy_function import EnergyFunction, log_mean
from .features import Features
from .module import DensityModule, ask
from .negatives import PCD, Langevin, Negatives
from .network_energy import NetworkEnergy
from .rbm import RBMModule
from .rows import refuse_text

__all__ = ["RBM", "Energy", "EnergyModel"]

CHAINS = 100
"""Chains of annealed importance sampling, if no number is given."""
GUESSED = 1000
"""Rows of noise that the first guess of log Z is the mean of."""


class Energy(Spec, axis="energy"):
    """A function of binary rows whose negative is log p up to a constant."""

    def module(self, shape: tuple[int, ...]) -> EnergyFunction:
        """Its parameters, for rows of this shape."""
        raise NotImplementedError(f"{type(self).__name__} must build its module")


class RBM(Energy):
    """The free energy of a restricted Boltzmann machine of binary rows.

    >>> RBM(16)
    RBM(hidden=16)
    """

    hidden: int = 64

    def validate(self) -> None:
        require(is_integer(self.hidden), self, "hidden", "a positive integer")

    def module(self, shape: tuple[int, ...]) -> EnergyFunction:
        return RBMModule(shape, self.hidden)


class EnergyModel(_Generative):
    """A density by an energy: `RBM(hidden)` of binary rows, or any network of numbers and images.

    A network's energy is F(x) = f(z) + ½‖z‖², f its one output and z the row in the units of the columns. `negatives`
    are `PCD(steps)`, `CD(steps)`, `NCE(ratio)` of either, and `Langevin(steps)` of networks, which "auto" takes; for
    machines it takes `PCD(1)`.

    log Z of a machine is exact where its smaller layer has 20 units or fewer; beyond, and of networks, `log_prob` is an
    estimate by annealed importance sampling (`draws` chains), with its standard error. `free_energy` needs no log Z.
    New rows are the ends of chains of `steps` steps; those of an `RBM` have hidden units (`return_hidden=True`).

    >>> rows = np.repeat([[0, 0, 1], [1, 1, 0]], 50, axis=0)
    >>> model = EnergyModel(RBM(4), PCD(1, chains=50), inference=MAP(Adam(0.05), epochs=30), random_state=0).fit(rows)
    >>> model.log_prob_kind_, bool(model.log_prob([[1, 1, 0]])[0] > model.log_prob([[1, 0, 0]])[0])
    ('exact', True)
    >>> from likely.models.generative import NCE
    >>> from likely.networks import MLP
    >>> numbers = np.random.default_rng(0).normal(size=(64, 2))
    >>> model = EnergyModel(MLP((8,)), NCE(), inference=MAP(epochs=2), random_state=0).fit(numbers)
    >>> model.log_prob_kind_, model.sample(3, random_state=0).shape
    ('estimate', (3, 2))
    """

    energy = Argument("energy is the function that the model is made of; free_energy gives its values")

    def __init__(
        self,
        energy: Any = RBM(64),  # noqa: B008 (specs are frozen values)
        negatives: Any = "auto",
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
        energy, negatives = self._energy(), self._negatives()
        require(is_integer(self.steps), self, "steps", "a positive integer")
        if negatives.moves == "langevin" and isinstance(energy, Energy):
            raise SpecError(
                f"negatives={negatives!r} follow the gradient of an energy of numbers, and {energy!r} is one of binary "
                "rows: use PCD, CD or NCE."
            )

    def _energy(self) -> Energy | Network:
        value = vars(self)["energy"]
        named = isinstance(value, str) and value.partition("(")[0].strip().lower() in map(str.lower, registered(Energy))
        if named or isinstance(value, Energy):
            return as_spec(value, Energy, "energy")
        try:
            return as_network(value)
        except SpecError as error:
            raise SpecError(f"energy must be RBM(hidden) or a network: {error}") from error

    def _negatives(self) -> Negatives:
        if isinstance(self.negatives, str) and self.negatives == "auto":
            return PCD() if isinstance(self._energy(), Energy) else Langevin()
        return as_spec(self.negatives, Negatives, "negatives")

    @property
    def log_prob_kind_(self) -> str:  # type: ignore[override]
        """Exact where log Z is a sum over few states."""
        if "posterior_" not in self.__dict__:
            return "estimate"
        module = self.posterior_.module
        assert isinstance(module, EnergyModule)
        return "exact" if module.energy.enumerable else "estimate"

    def _objective(self) -> Objective:
        return RowDensity(type(self).__name__, "bound", random=True)

    def _likelihood(self) -> Any:
        return Bernoulli() if isinstance(self._energy(), Energy) else Normal()

    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        if not isinstance(self._energy(), Energy):
            refuse_text(self.form_, "a network's energy is one of numbers")
            warn_of_constants(self, x)

    def _module(self) -> DensityModule:
        if self.condition_ is not None:
            raise DataError("EnergyModel takes no condition; let it be columns of X, and fix them in sample.")
        energy, shape = self._energy(), self.form_.shape
        if isinstance(energy, Energy):
            return EnergyModule(energy.module(shape), self._negatives(), self.steps)
        units = Features(self.columns_, shape, missing=False)
        return EnergyModule(NetworkEnergy(energy, units, shape), self._negatives(), self.steps)

    def _automatic(self, rows: int) -> Inference:
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(2_000, 6_000 * batch // max(1, rows)))
        rate = 5e-3 if isinstance(self._energy(), Energy) else 2e-3
        return MAP(Adam(rate), epochs=epochs, batch_size=batch, schedule=Cosine())

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
        return self._in_blocks(len(x), lambda rows: self._cpu(ask(self.posterior_, member, "free_energy", x[rows])))

    def free_energy(self, X: Any) -> np.ndarray:
        """F(x) of each row, (n,); over the members of a posterior, their mean."""
        x, _ = self._asked(X, None)
        weights = self.posterior_.weights.double().tolist()
        return sum(weight * self._member_energy(member, x).numpy() for member, weight in enumerate(weights))


class EnergyModule(DensityModule):
    """The energy of rows, and the chains that its negatives and its draws come from."""

    chain: Tensor

    def __init__(self, energy: EnergyFunction, negatives: Negatives, steps: int) -> None:
        super().__init__()
        self.energy, self.negatives, self.steps = energy, negatives, steps
        with torch.no_grad():
            self.register_buffer("chain", energy.chains(negatives.memory))
        self.log_z = nn.Parameter(torch.zeros(1)) if negatives.learns_normaliser else None

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.energy.adapt(x, weight)
        self.chain.copy_(self.energy.chains(len(self.chain)))
        if self.log_z is not None:
            noise = self.energy.noise(GUESSED)
            self.log_z.fill_(log_mean(-self.energy.free_energy(noise) - self.energy.noise_log_prob(noise))[0])

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """What the negatives make of each row, (n,)."""
        return self.negatives.surrogate(self, self.energy.encode(x))

    def keep(self, chain: Tensor) -> None:
        """Let chains go on from here, in training."""
        if self.training:
            self.chain.copy_(chain)

    def free_energy(self, x: Tensor) -> Tensor:
        """F(x) of each row, (n,)."""
        return self.energy.free_energy(self.energy.encode(x))

    def log_normaliser(self, chains: int) -> tuple[Tensor, Tensor]:
        """log Z and its standard error."""
        return self.energy.log_normaliser(chains)

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        state = self.energy.drawn(count, self.steps)
        return self.energy.decode(state), self.energy.hidden(state)

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """The gaps by a chain, with the rest held."""
        state = self.energy.encode(x.repeat(draws, *(1 for _ in x.shape[1:])))
        gaps = state.isnan()
        new = self.energy.filled(state.nan_to_num(), gaps, self.steps)
        return self.energy.decode(new).unflatten(0, (draws, len(x)))
