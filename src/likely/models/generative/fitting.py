"""Fitting of generative models: rows and conditions in, a module built and adapted, θ found by an inference.

p(x; θ)  or  p(x | condition; θ),      θ ~ prior
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from sklearn.base import DensityMixin
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError, TrainingError
from ...core.estimator import Estimator
from ...core.random import isolated, seed_of
from ...core.spec import Spec, as_spec
from ...core.threads import footprint, threads_for
from ...core.validation import as_weights, device_of
from ...inference import MAP, Inference, Posterior, Problem
from ...inference.dataset import Dataset
from ...inference.objective import Objective, RowDensity, refuse
from ...inference.work import rows_per_step
from ...likelihoods import Likelihood, Normal
from ...optim import Adam
from ...priors import Prior
from ..emissions import Columns
from ..reports import Reports
from .condition import ConditionForm
from .files import restore, state_of
from .grey import drawn_anew
from .module import DensityModule, UnderCondition
from .observed import columns_of
from .rows import RowForm, as_shown

__all__: list[str] = []

STEPS = 6_000
"""Steps of gradient training that `inference="auto"` takes, more or less."""


class _Fitting(Reports, DensityMixin, Estimator):
    """How every generative model is fitted, and kept in a file.

    A subclass builds its module in `_module` from `form_`, `columns_` and `condition_`, and says what kind of
    log-probability it has.
    """

    log_prob_kind_: str = "exact"
    takes_tables: ClassVar[bool] = True
    """`FrameModel` hands it tables as they are."""
    prior: Any
    inference: Any
    random_state: Any
    device: Any
    verbose: bool
    form_: RowForm
    columns_: Columns
    condition_: ConditionForm | None
    missing_: bool
    posterior_: Posterior

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name; one may have the name of a verb, as `Flow(transform=…)` has."""
        params = {name: vars(self)[name] for name in self._get_param_names()}
        nested = [(name, value) for name, value in params.items() if deep and isinstance(value, Spec)]
        for name, value in nested:
            params |= {f"{name}__{inner}": own for inner, own in value.get_params().items()}
        return params

    # --- what differs -------------------------------------------------------------------------------------------
    def _module(self) -> DensityModule:
        """A new module for rows of `form_.shape`, conditions of `condition_.shape` and columns `columns_`."""
        raise NotImplementedError(f"{type(self).__name__} must build its module")

    def _objective(self) -> Objective:
        """What the module's output means to an inference."""
        kind = "exact" if self.log_prob_kind_ == "exact" else "bound"
        return RowDensity(type(self).__name__, kind, random=kind != "exact")  # type: ignore[arg-type]

    def _likelihood(self) -> Any:
        """The likelihoods of the columns, as `columns_of` takes them."""
        return getattr(self, "likelihood", "auto")

    def _number_likelihood(self, column: Tensor) -> Likelihood:
        """What "auto" means for a column of numbers."""
        return Normal()

    def _marginalises(self) -> bool:
        """Whether training rows may have missing values."""
        return False

    def _automatic(self, rows: int) -> Inference:
        """What `inference="auto"` means for so many rows."""
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(2_000, STEPS * batch // max(1, rows)))
        held_out = 0.1 if rows >= 200 else None
        patience = None if held_out is None else max(10, epochs // 5)
        return MAP(Adam(1e-3), epochs=epochs, batch_size=batch, validation=held_out, patience=patience, clip_norm=10.0)

    def _check_arguments(self) -> None:
        """Raise a `SpecError` for arguments that mean nothing."""

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, condition: Any = None, sample_weight: Any = None) -> Self:
        """Learn θ from rows X: an array (n, d), images (n, c, h, w) or a table; and a condition for each row.

        A row of weight 2 is the row twice: exactly with full batches, and with smaller ones on average over their draw.
        (Adam divides gradients by their size, so that where they are 0 but for rounding, rounding decides.)
        """
        for learned in ("posterior_", "_costs"):
            self.__dict__.pop(learned, None)
        self._check_arguments()
        self.form_, x = RowForm.read(self, X)
        weight = as_weights(sample_weight, x)
        self.missing_ = bool(x.is_floating_point() and x.isnan().any())
        self._check_rows(x)
        auto = isinstance(self.inference, str) and self.inference == "auto"
        inference = self._automatic(len(x)) if auto else as_spec(self.inference, Inference, "inference")
        inference = drawn_anew(inference, self._likelihood(), x, chosen=not auto)
        seed = distributed.agreed(seed_of(self.random_state))
        shown = as_shown(x, inference, seed)
        names = getattr(self, "feature_names_in_", None)
        self.columns_ = columns_of(self._likelihood(), shown, self.form_.columns, names, self._number_likelihood)
        given = self._read_condition(condition, len(x), weight)
        device = device_of(self.device)
        problem = Problem(
            build=lambda seed: self._built(seed, shown, given, weight),
            objective=self._objective(),
            prior=as_spec(self.prior, Prior, "prior"),
            data=self._dataset(x, given, weight, inference.dtype, device),
            seed=seed,
            seeded=self.random_state is not None,
            encode=lambda X, y, w: self._encoded(X, y, w, inference.dtype, device),
            title=type(self).__name__,
            verbose=bool(self.verbose),
        )
        refuse(inference, problem.objective)
        problem = self._started(problem, inference, shown)
        with threads_for(self._footprint()[0] * rows_per_step(inference, len(x))):
            posterior = inference.fit(problem)
        for name, value in posterior.parameters.items():
            if not bool(torch.isfinite(value).all()):
                raise TrainingError(f"The fit ended with parameters that are not finite ({name}); try a smaller rate.")
        self.posterior_ = posterior
        return self

    def _built(self, seed: int, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> DensityModule:
        with isolated(seed):
            module = self._module()
            module.adapt(x, condition, weight)
        return module

    def _started(self, problem: Problem, inference: Inference, shown: Tensor) -> Problem:
        """The problem, with modules that start where something simpler led; `shown` are rows as training sees them."""
        return problem

    def _check_rows(self, x: Tensor) -> None:
        if len(x) < 2:
            raise DataError(f"{type(self).__name__} needs 2 rows or more; X has {len(x)}.")
        if self.missing_ and not self._marginalises():
            raise DataError(self._gaps() + " Or fill them first.")
        flat = x.flatten(1)
        gone = flat.isnan().all(0) if flat.is_floating_point() else torch.zeros(flat.shape[1], dtype=torch.bool)
        if bool(gone.any()):
            raise DataError(f"Column {self._name(int(gone.nonzero()[0]))} of X has no value in any row; leave it out.")

    def _gaps(self) -> str:
        able = "Autoregressive, VAE, Mixture, GaussianMixture, FactorAnalysis and PCA"
        return f"X has missing values, and {type(self).__name__} cannot marginalise over them; {able} can."

    def _name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return repr(str(names[column])) if names is not None else str(column)

    def _read_condition(self, condition: Any, rows: int, weight: Tensor | None) -> Tensor | None:
        """Learn the form of the training rows' conditions, and give them as numbers."""
        self.condition_ = None if condition is None else ConditionForm.of(condition, weight)
        return self._conditions(condition, rows)

    def _conditions(self, condition: Any, rows: int) -> Tensor | None:
        if self.condition_ is None:
            if condition is not None:
                raise DataError(f"{type(self).__name__} was fitted without a condition; fit(X, condition) first.")
            return None
        given = self.condition_.encode(condition)
        if len(given) != rows:
            raise DataError(f"condition has {len(given)} rows, but X has {rows}.")
        return given

    def _dataset(
        self, x: Tensor, condition: Tensor | None, weight: Tensor | None, dtype: torch.dtype, device: Any
    ) -> Dataset:
        weight = None if weight is None else weight.to(device, dtype)
        return Dataset(x.to(device), None, weight, dtype, condition=None if condition is None else condition.to(device))

    def _encoded(self, X: Any, condition: Any, weight: Any, dtype: torch.dtype, device: Any) -> Dataset:
        x = self.form_.rows(self, X)
        return self._dataset(x, self._conditions(condition, len(x)), as_weights(weight, x), dtype, device)

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in self.__dict__

    def _footprint(self) -> tuple[int, int]:
        """Multiply-adds of the largest operation, and numbers in the widest layer, for one row."""
        known = self.__dict__.get("_costs")
        if known is None:
            with isolated(0):
                module = self._module().eval()
                x = torch.zeros(2, *self.form_.shape)
                condition = None if self.condition_ is None else torch.zeros(2, *self.condition_.shape)
                costs = footprint(UnderCondition(module, condition), x)
            known = self.__dict__["_costs"] = (costs.work, max(costs.width, math.prod(self.form_.shape)))
        return known

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return state_of(self)

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore(self, learned, tensors)
