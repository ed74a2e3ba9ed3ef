"""Generative models: p(x; θ) or p(x | condition; θ) with a network inside, θ found by any inference that can.

log p(x | data) = log Σₛ wₛ p(x; θₛ)      x ~ p( · ; θₛ),  s ~ w
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core import distributed
from ...core.draws import count_of
from ...core.errors import DataError, TrainingError
from ...core.estimator import Estimator
from ...core.random import isolated, seed_of, spread
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
from .condition import ConditionForm
from .files import restore, state_of
from .grey import drawn_anew
from .module import DensityModule, UnderCondition, ask, with_error
from .observed import columns_of
from .rows import RowForm, as_shown

__all__: list[str] = []

BLOCK = 1 << 22
"""Numbers that a block of rows may have in the widest layer, over all draws of a row."""
LEAST = 16
"""Rows of a block, at least."""
STEPS = 6_000
"""Steps of gradient training that `inference="auto"` takes, more or less."""
FILLED = 64
"""Draws whose mean fills a missing value."""


class _Generative(DensityMixin, Estimator):
    """What every generative model shares: rows in and out, fitting by an inference, averages over what it found.

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
        """Learn θ from rows X: an array (n, d), images (n, c, h, w) or a table; and a condition for each row."""
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
        given = self._read_condition(condition, len(x))
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

    def _read_condition(self, condition: Any, rows: int) -> Tensor | None:
        """Learn the form of the training rows' conditions, and give them as numbers."""
        self.condition_ = None if condition is None else ConditionForm.of(condition)
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

    # --- questions ----------------------------------------------------------------------------------------------
    def log_prob(
        self,
        X: Any,
        condition: Any = None,
        *,
        draws: int | None = None,
        random_state: Any = None,
        return_error: bool = False,
    ) -> Any:
        """log p(x) of each row, (n,): exact, a bound, or an estimate, as `log_prob_kind_` says.

        Where it is found by draws, `draws` says by how many and `return_error=True` adds the standard error of each
        row; an exact one has error 0.
        """
        x, given = self._asked(X, condition)
        count = self._draws(draws)
        members = []
        for member, log_weight in enumerate(self.posterior_.weights.double().log().tolist()):
            rows, error = self._member_log_prob(member, x, given, count, self._seed_of_question(random_state, member))
            members.append((rows + log_weight, error))
        log_probs, error = (torch.stack(part) for part in zip(*members, strict=True))
        total = torch.logsumexp(log_probs, 0)
        if not return_error:
            return total.numpy()
        fraction = (log_probs - total).exp()  # of p(x) that each member has
        return total.numpy(), (fraction * error).square().sum(0).sqrt().numpy()

    def _draws(self, draws: int | None) -> int:
        """How many draws estimate log p; 1 where none are needed."""
        if draws is not None and self.log_prob_kind_ == "exact":
            raise DataError(f"{type(self).__name__} has the exact log_prob: it takes no draws.")
        return 1 if draws is None else count_of(draws, "draws")

    def _seed_of_question(self, random_state: Any, member: int) -> int:
        """Answers that need draws are the same at every call, unless a seed is given."""
        return spread(0 if random_state is None else seed_of(random_state), member + 1)[member]

    def _member_log_prob(
        self, member: int, x: Tensor, condition: Tensor | None, draws: int, seed: int
    ) -> tuple[Tensor, Tensor]:
        """log p and its standard error under one member."""
        values, errors = [], []
        work, width = self._footprint()
        step = max(LEAST, BLOCK // (width * draws))
        with self._question(seed), threads_for(work * draws * min(step, len(x))):
            for first in range(0, len(x), step):
                rows = slice(first, first + step)
                given = None if condition is None else condition[rows]
                answer = ask(self.posterior_, member, "log_prob", x[rows], given, draws)
                value, error = answer if isinstance(answer, tuple) else with_error(answer.double())
                values.append(value.double())
                errors.append(error.double())
        return torch.cat(values).cpu(), torch.cat(errors).cpu()

    def score(self, X: Any, condition: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x), in nats per row."""
        return float(np.average(self.log_prob(X, condition), weights=sample_weight))

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """n new rows, in the form of X; with `return_hidden` also their codes, where the model has them.

        For a model fitted with a condition, `condition` has one row, or n. Otherwise it fixes some columns: a dict or
        a table of their values, or rows with NaN where the model is to choose.
        """
        check_is_fitted(self)
        count = count_of(n)
        seed = self._seed(random_state)
        if self.condition_ is None and condition is not None:
            return self.form_.given(self._completed(self.form_.fixed(condition, count), None, 1, seed)[0])
        new, hidden = self._drawn(count, seed, self._spread_condition(condition, count))
        return (new, hidden) if return_hidden and hidden is not None else new

    def _drawn(self, count: int, seed: int, *given: Tensor | None) -> tuple[Any, np.ndarray | None]:
        """New rows in the form of X, with their codes, from what is given of each row (None if nothing is)."""
        parts: list[tuple[Tensor, Tensor | None]] = []
        owners = self._members_of(count, seed)
        for member, rows in owners:
            own = [None if part is None else part[rows] for part in given]
            with self._question(spread(seed, member + 2)[member + 1]), threads_for(self._footprint()[0] * len(rows)):
                parts.append(ask(self.posterior_, member, "drawn", len(rows), *own))
        order = torch.cat([rows for _, rows in owners]).argsort()
        new = self.form_.given(self._as_recorded(torch.cat([self._cpu(x) for x, _ in parts])[order]))
        hidden = [self._cpu(code) for _, code in parts if code is not None]
        return new, torch.cat(hidden)[order].numpy() if hidden else None

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None, *, condition: Any = None) -> Any:
        """X with each NaN filled by its mean given the rest of the row (a label by the most probable one).

        With `draws`, so many fillings drawn from that distribution: (draws, n, …), or a list of tables.
        """
        x, given = self._asked(X, condition, cast=False)
        count = FILLED if draws is None else count_of(draws, "draws")
        seed = self._seed(random_state) if draws is not None else self._seed_of_question(random_state, 0)
        filled = self._completed(x.double(), given, count, seed)
        if draws is not None:
            return [self.form_.given(rows) for rows in filled] if self.form_.columns else filled.numpy()
        return self.form_.given(self._summary(x.double(), filled), x.isnan())

    def _summary(self, x: Tensor, filled: Tensor) -> Tensor:
        """The mean of draws (draws, n, *shape) where x is missing; for labels the most frequent one."""
        flat, out = filled.flatten(2), x.flatten(1).clone()
        gaps = out.isnan()
        mean = flat.mean(0)
        for part in self.columns_.parts:
            if part.likelihood.labels:
                mean[:, part.columns] = flat[:, :, part.columns].mode(0).values
        return torch.where(gaps, mean, out).unflatten(1, self.form_.shape)

    def _completed(self, x: Tensor, condition: Tensor | None, draws: int, seed: int) -> Tensor:
        """Rows with NaN filled by draws, (draws, n, *shape)."""
        out = x.expand(draws, *x.shape).clone()
        rows = x.flatten(1).isnan().any(1).nonzero().ravel()
        if not len(rows):
            return out
        self.columns_.check(x.flatten(1))
        step = max(1, BLOCK // (self._footprint()[1] * draws))
        for member, own in self._members_of(draws, seed):
            for part in rows.split(step):
                given = None if condition is None else condition[part]
                inputs = self._placed(x[part])
                with self._question(spread(seed, member + 2)[member + 1]):
                    new = self._cpu(ask(self.posterior_, member, "complete", inputs, given, len(own)))
                new = self._as_recorded(new)
                gaps = x[part].isnan()
                out[own[:, None], part] = torch.where(gaps, new, x[part])
        return out

    # --- helpers ------------------------------------------------------------------------------------------------
    def _question(self, seed: int) -> AbstractContextManager[Any]:
        """Where a question's random numbers come from: all of them, whoever draws.

        A model whose code asks for the current generator itself has `drawing` here: that costs nothing.
        """
        return isolated(seed)

    def _as_recorded(self, x: Tensor) -> Tensor:
        """Draws in the numbers that columns of a table were recorded in, unless a likelihood says what they are."""
        told = not isinstance(getattr(self, "likelihood", "auto"), str)
        return x if told else self.form_.as_recorded(x)

    def _asked(self, X: Any, condition: Any, *, cast: bool = True) -> tuple[Tensor, Tensor | None]:
        check_is_fitted(self)
        x = self.form_.rows(self, X)
        given = self._conditions(condition, len(x))
        self.columns_.check(x.flatten(1))
        if cast and not self._marginalises() and x.is_floating_point() and bool(x.isnan().any()):
            raise DataError(self._gaps())
        return (self._placed(x) if cast else x), None if given is None else self._placed(given)

    def _placed(self, x: Tensor) -> Tensor:
        return x.to(self.posterior_.weights.device, self.posterior_.dtype)

    @staticmethod
    def _cpu(x: Tensor) -> Tensor:
        return x.detach().cpu().double()

    def _spread_condition(self, condition: Any, count: int) -> Tensor | None:
        """One condition for all new rows, or one for each."""
        if self.condition_ is None:
            return None
        single = isinstance(condition, str | int | float | bool | np.generic)
        given = self.condition_.encode([condition] if single else condition)
        if len(given) not in (1, count):
            raise DataError(f"condition has {len(given)} rows; it must have 1, or n = {count}.")
        return self._placed(given.expand(count, *given.shape[1:]) if len(given) == 1 else given)

    def _members_of(self, count: int, seed: int) -> list[tuple[int, Tensor]]:
        """Which of so many new rows each member makes."""
        weights = self.posterior_.weights.double().cpu()
        if len(weights) == 1:
            return [(0, torch.arange(count))]
        generator = torch.Generator().manual_seed(spread(seed, 1)[0])
        owner = torch.multinomial(weights, count, replacement=True, generator=generator)
        return [(int(member), (owner == member).nonzero().ravel()) for member in owner.unique()]

    @property
    def history_(self) -> dict[str, Any]:
        """What training recorded epoch by epoch."""
        check_is_fitted(self)
        return self.posterior_.info.get("history", {})

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return state_of(self)

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore(self, learned, tensors)
