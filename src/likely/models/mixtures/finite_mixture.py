"""What every finite mixture answers: which component, how surely, how likely, and new rows.

log p(x) = log Σₖ πₖ p(x | θₖ),      p(k | x) = πₖ p(x | θₖ) / p(x)
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import DensityMixin
from torch import Tensor
from torch.distributions import Categorical

from ...core import distributed
from ...core.draws import count_of, form_of, in_form
from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.random import isolated
from ...core.spec import require
from ...core.threads import threads_for
from ...core.validation import as_rows, as_weights
from ...inference import LatentFit
from ...inference.latent.density import fit_latent
from ...inference.latent.em import best_start
from ...inference.latent.latent import Params
from ..averaged import Averaged, side_by_side
from ..emissions import Emission
from ..emissions.starts import Init
from .components import Components
from .responsibilities import blocks, split

__all__: list[str] = []

TOGETHER = 4096
"""Rows whose missing values are drawn at once."""


class _FiniteMixture(DensityMixin, Averaged):
    """K components with weights. A subclass says what its components are and how they are kept."""

    log_prob_kind_: ClassVar[str] = "exact"
    n_components: int
    prior: Any
    inference: Any
    init: Init
    random_state: Any
    verbose: bool

    # --- what a subclass says -----------------------------------------------------------------------------------
    @abstractmethod
    def _emission(self, x: Tensor, names: Sequence[str] | None = None) -> Emission:
        """The family of the components, as these rows show it. Also what a hidden Markov model asks for."""

    @abstractmethod
    def _fitted(self) -> tuple[Emission, Params]:
        """The emission and its parameters, with an axis of one start."""

    @abstractmethod
    def _keep(self, model: Components, params: Params) -> None:
        """Write down what was learned of the components, and report what had to be held up."""

    def _bound(self, x: Tensor, weight: Tensor | None) -> Components:
        """The mixture that EM fits."""
        names = getattr(self, "feature_names_in_", None)
        return Components(self._emission(x, names), x, weight, self.n_components, self.init)

    # --- fit ----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn weights and components from the rows; NaN is a missing value. y is ignored."""
        self._forget()
        self._check_arguments()
        x = self._rows(X, reset=True)
        weight = as_weights(sample_weight, x)
        self.form_ = form_of(X)
        self._check_rows(x, weight)
        model = self._bound(x, weight)
        options = {"name": type(self).__name__, "random_state": self.random_state, "verbose": self.verbose}
        fit = fit_latent(self.inference, model, self.prior, **options)
        self._learn(model, fit)
        return self

    def _learn(self, model: Components, fit: LatentFit) -> None:
        params = {name: value.unsqueeze(0) for name, value in fit.params.items()}
        self.weights_ = fit.params["weights"].numpy()
        self.history_ = fit.trace.numpy()
        self.n_iter_, self.converged_ = fit.n_iter, fit.converged
        smooth = model.emission.smoothing > 0
        point = not smooth and fit.posterior is None
        self.log_likelihood_ = float(fit.trace[-1]) if point else model.log_likelihood(params)
        self._keep_draws(fit)
        best = best_start(fit.finals)
        self.reseeded_ = {str(k): model.place(row) for (start, k), row in model.reseeded.items() if start == best}
        self._keep(model, params)
        for component, row in self.reseeded_.items():
            self._report(
                f"component {component} was left without rows and began again at row {row}, which was explained "
                f"worst; its weight is now {self.weights_[int(component)]:.3g}. Fewer components may do."
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the component of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    # --- answers ------------------------------------------------------------------------------------------------
    def log_prob(self, X: Any) -> np.ndarray:
        """log p(x) of each row, (n,); a missing value (NaN) is marginalised."""
        x = self._questioned(X)
        draws = self._draws()
        if draws is None:
            return np.concatenate([evidence for _, _, evidence in self._answers(x)])
        return self._average_log_prob(x, *draws)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x), in nats per row."""
        return float(np.average(self.log_prob(X), weights=sample_weight))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Responsibilities: p(k | x), (n, K)."""
        return self._responsibilities(self._questioned(X))

    def _responsibilities(self, x: Tensor) -> np.ndarray:
        responsibilities = np.empty((len(x), self.n_components))
        for rows, responsibility, _ in self._answers(x):
            responsibilities[rows] = responsibility
        return responsibilities

    def predict(self, X: Any) -> np.ndarray:
        """The most probable component of each row."""
        x = self._questioned(X)
        return np.concatenate([responsibility.argmax(1) for _, responsibility, _ in self._answers(x)])

    def posterior(self, X: Any) -> Categorical:
        """The distribution of each row's component, as a torch distribution."""
        responsibilities = self.predict_proba(X)
        if not responsibilities.any(1).all():
            row = int((~responsibilities.any(1)).argmax())
            raise DataError(f"row {row} of X has probability 0 in every component, so that it has no posterior.")
        return Categorical(probs=torch.from_numpy(responsibilities))

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """n new rows (n, d), a frame if the model was fitted to one; with `return_hidden` also their components (n,).

        `condition` is one row with NaN for what is to be drawn given its other values.
        """
        count, seed = count_of(n), self._seed(random_state)
        self._check_fitted()
        if condition is None:
            emission, own, weights = self._all_components()
            chosen = self._members_of(count, seed)
            chosen = torch.zeros(count, dtype=torch.int64) if chosen is None else chosen
            with isolated(seed):
                component = torch.multinomial(weights[chosen], 1)[:, 0]
                rows = emission.sample(own, chosen * self.n_components + component)
        else:
            given = self._questioned(condition)
            if len(given) != 1:
                raise DataError(f"condition has {len(given)} rows; it is one row, with NaN for what is to be drawn.")
            ((_, share),) = self._shares(given.double())
            with isolated(seed):
                rows, component = self._filled(given.double().expand(count, -1), share.expand(count, -1))
            component = component % self.n_components
        drawn = in_form(rows.numpy(), self.form_, getattr(self, "feature_names_in_", None))
        return (drawn, component.numpy()) if return_hidden else drawn

    def _all_components(self) -> tuple[Emission, Params, Tensor]:
        """The emission, the components of all draws as one list (S·K, …), and their weights (S, K) in each draw."""
        emission, params = self._fitted()
        draws = self._draws()
        members = dict(params if draws is None else draws[0])
        weights = members.pop("weights")
        return emission, side_by_side(members), weights

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None) -> Any:
        """X with each missing value at its mean given the known ones of its row (of labels, the most probable).

        With `draws`, so many draws of it instead: (draws, n, d).
        """
        x = self._questioned(X).double().clone()  # X itself stays as it is
        gaps = x.isnan().any(1).nonzero()[:, 0]
        partial = x[gaps]
        if draws is None:
            emission, own, _ = self._all_components()
            for rows, share in self._shares(partial):
                some = partial[rows]
                x[gaps[rows]] = torch.where(some.isnan(), emission.expected(own, some, share), some)
            return in_form(x.numpy(), form_of(X), getattr(self, "feature_names_in_", None))
        count = count_of(draws, "draws")
        several = x.repeat(count, 1, 1)
        with isolated(self._seed(random_state)):
            for rows, share in self._shares(partial):
                step = max(1, TOGETHER // len(share))
                for first in range(0, count, step):
                    times = min(step, count - first)
                    filled, _ = self._filled(partial[rows].repeat(times, 1), share.repeat(times, 1))
                    several[first : first + times, gaps[rows]] = filled.unflatten(0, (times, -1))
        return several.numpy()

    def _shares(self, x: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Block by block: which rows, and p(draw, component | what is seen of x) of each, (n, S·K)."""
        draws = self._draws()
        if draws is None:
            for rows, share, _ in self._answers(x):
                yield rows, _possible(torch.from_numpy(share), rows.start)
            return
        members, log_weights = draws
        for rows in self._wide_blocks(x, len(log_weights)):
            yield rows, _possible(self._joint(members, log_weights, x[rows]).flatten(1).softmax(-1), rows.start)

    def _filled(self, x: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Rows with their missing values drawn, and which of all components they were drawn from, by their shares."""
        emission, own, _ = self._all_components()
        component = torch.multinomial(share, 1)[:, 0]
        used, index = component.unique(return_inverse=True)
        return emission.filled({name: value[used] for name, value in own.items()}, x, index), component

    @property
    def n_parameters_(self) -> int:
        """How many free parameters the mixture has."""
        self._check_fitted()
        return self._fitted()[0].free(self.n_components) + self.n_components - 1

    def aic(self, X: Any) -> float:
        """Akaike's criterion, −2 log p(X) + 2·parameters; less is better."""
        return -2 * float(self.log_prob(X).sum()) + 2 * self.n_parameters_

    def bic(self, X: Any) -> float:
        """The Bayesian criterion, −2 log p(X) + log(n)·parameters; less is better."""
        log_prob = self.log_prob(X)
        return -2 * float(log_prob.sum()) + math.log(len(log_prob)) * self.n_parameters_

    # --- files --------------------------------------------------------------------------------------------------
    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | {"K": self.n_components}

    def _check_learned(self) -> None:
        emission, params = self._fitted()
        own = {name: value[0] for name, value in params.items() if name != "weights"}
        emission.check_params(own, self.n_components, self.n_features_in_)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _average_log_prob(self, x: Tensor, draws: Params, log_weights: Tensor) -> np.ndarray:
        """log Σₛ wₛ p(x | θₛ) of each row."""
        parts = self._wide_blocks(x, len(log_weights))
        return torch.cat([self._joint(draws, log_weights, x[rows]).logsumexp((1, 2)) for rows in parts]).numpy()

    def _wide_blocks(self, x: Tensor, draws: int) -> Iterator[slice]:
        """Parts of the rows, once they are checked, for arrays over all components of so many draws."""
        self._fitted()[0].check(x)
        return blocks(slice(0, len(x)), self.n_components * x.shape[1] * draws)

    def _joint(self, draws: Params, log_weights: Tensor, x: Tensor) -> Tensor:
        """log p(x, component, draw) of each row: (n, S, K)."""
        with _threads(slice(0, len(x)), self.n_components * x.shape[1] * len(log_weights), x):
            log_prob = self._fitted()[0].smooth_log_prob(draws, x.double())
        return log_prob + draws["weights"].log() + log_weights.unsqueeze(-1)

    def _questioned(self, X: Any) -> Tensor:
        """The rows that a question is about."""
        self._check_fitted()
        return self._rows(X, reset=False)

    def _answers(self, x: Tensor) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Block by block: which rows, their responsibilities (n, K) and log p(x) (n,)."""
        emission, params = self._fitted()
        emission.check(x)
        width = self.n_components * x.shape[1]
        for rows in blocks(slice(0, len(x)), width):
            with _threads(rows, width, x):
                responsibility, evidence = split(emission.log_prob(params, x[rows]), params["weights"])
            if bool(evidence.isnan().any()):
                row = rows.start + int(evidence.isnan().any(1).nonzero()[0])
                raise DataError(f"row {row} of X, or a parameter of the model, is too large for float64; rescale X.")
            yield rows, responsibility[:, 0].numpy(), evidence[:, 0].numpy()

    def _check_arguments(self) -> None:
        whole = isinstance(self.n_components, int | np.integer) and not isinstance(self.n_components, bool)
        require(whole and self.n_components >= 1, self, "n_components", "a positive integer")
        require(self.init in ("k-means++", "random"), self, "init", '"k-means++" or "random"')

    def _check_rows(self, x: Tensor, weight: Tensor | None) -> None:
        known = len(x) if weight is None else int((weight > 0).sum())
        if known < self.n_components:
            count = "1 sample" if known == 1 else f"{known} samples"
            note = "" if weight is None else " with weight"
            raise DataError(f"X has {count}{note}, fewer than n_components={self.n_components}; ask for fewer.")
        if not x.is_floating_point():
            return
        present = torch.zeros(x.shape[1], dtype=torch.bool)
        for rows in blocks(slice(0, len(x)), x.shape[1]):
            seen = ~x[rows].isnan()
            present |= (seen if weight is None else seen & (weight[rows] > 0).unsqueeze(-1)).any(0)
            if bool(present.all()):
                return
        column = int((~present).nonzero()[0])
        name = getattr(self, "feature_names_in_", range(x.shape[1]))[column]
        raise DataError(f"column {name!r} of X has no value: all its rows are NaN; leave it out.")

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        x = as_rows(self, X, reset=reset, missing=True)
        if x.ndim != 2:
            raise DataError(f"X has shape {tuple(x.shape)}; {type(self).__name__} needs one vector a row: (n, d).")
        return x

    def _report(self, finding: str) -> None:
        if distributed.rank() == 0:
            warnings.warn(f"{type(self).__name__}: {finding}", LikelyWarning, stacklevel=5)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _possible(share: Tensor, first: int) -> Tensor:
    """Shares of components, once there is one that each row may come from."""
    strange = ~(share.sum(1) > 0)
    if bool(strange.any()):
        row = first + int(strange.nonzero()[0])
        raise DataError(f"row {row} of those with gaps has probability 0 in every component; nothing fills its gaps.")
    return share


def _threads(rows: slice, width: int, x: Tensor) -> AbstractContextManager[int]:
    """As many as a block of rows is worth: `width` numbers for each, of which each may be a sum over the columns."""
    return threads_for((rows.stop - rows.start) * width * x.shape[1])


def require_number(model: Any, name: str, *, least: float = 0.0) -> None:
    """Raise a `SpecError` unless the argument is a number of at least `least`."""
    value = getattr(model, name)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and least <= value < math.inf):
        raise SpecError(f"{type(model).__name__}({name}={value!r}): {name} must be a number of at least {least:g}.")


def listed(components: Sequence[int]) -> str:
    """Components by number, in words."""
    return f"component {components[0]}" if len(components) == 1 else f"components {', '.join(map(str, components))}"
