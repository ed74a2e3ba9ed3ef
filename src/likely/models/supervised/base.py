"""Supervised models: four values make one.

p(y | x) = likelihood( network(x; θ) ),   θ ~ prior,   θ found by inference
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Distribution
from torch.func import functional_call

from ...core import distributed
from ...core.declared import COUNTS
from ...core.draws import count_of
from ...core.errors import DataError, ModelFileError, SpecError, TrainingError
from ...core.estimator import Estimator
from ...core.learned import restore_columns
from ...core.random import isolated, seed_of
from ...core.spec import as_spec
from ...core.threads import threads_for
from ...core.validation import as_weights, device_of
from ...data.rows import Inputs, Ragged, Rows, row_size
from ...inference import Inference, Posterior, Problem, automatic
from ...inference.dataset import Dataset
from ...inference.objective import Conditional, refuse
from ...inference.work import rows_per_step
from ...likelihoods import Likelihood, Target
from ...networks import as_network
from ...priors import Prior
from .build import Plan, Sample, baseline, plan
from .inputs import (
    KINDS,
    flat_weights,
    joined,
    kind_of,
    parted,
    read_inputs,
    rows_of_zeros,
)
from .units import check_restored, check_units, input_units

__all__ = ["Supervised", "as_array", "rows_of"]

BLOCK = 1 << 23
"""Numbers that a block of rows may have in the widest layer, over all members."""
LEAST = 64
"""Rows of a block, at least."""


MOST_NUMBERS = 10**8
"""That one row, or η of one row, of a model in a file may have."""


class Supervised(Estimator):
    """What `Classifier` and `Regressor` share: everything but how y is read and what `predict` answers."""

    likelihood: Any
    network: Any
    prior: Any
    inference: Any
    random_state: Any
    device: Any
    verbose: bool
    standardise: bool
    likelihood_: Likelihood
    posterior_: Posterior
    log_prob_kind_: ClassVar[str] = "exact"

    # --- what differs -------------------------------------------------------------------------------------------
    def _likelihood(self) -> Likelihood:
        """The likelihood in force, for the targets seen in `fit`."""
        raise NotImplementedError

    def _targets(self, y: Any, rows: int, *, reset: bool) -> Tensor:
        """y as a tensor (n, *positions, *event); missing targets are NaN."""
        raise NotImplementedError

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn θ from rows X and targets y. A missing target (NaN, or `missing_label`) does not count."""
        self.__dict__.pop("posterior_", None)  # a fit that fails leaves no model of other data behind
        x = read_inputs(self, X, reset=True)
        self.kind_ = kind_of(x)
        targets = self._read_targets(y, x, reset=True)
        self.likelihood_ = likelihood = self._likelihood()
        network, prior = as_network(self.network), as_spec(self.prior, Prior, "prior")
        device = device_of(self.device)
        likelihood.check(targets)
        network.check(x)
        self.positions_ = tuple(targets.shape[1 : targets.ndim - likelihood.event_dim])
        self.in_shape_ = x.shape if isinstance(x, Rows) else tuple(x.shape[1:])
        data = self._dataset(likelihood, x, targets, self._weights(sample_weight, x), torch.float64)
        self.target_ = self._target(likelihood, targets)
        some = Sample(x[:2], self.everywhere_) if isinstance(x, Rows) else None
        integer = not x.dtype.is_floating_point and x.dtype != torch.bool
        planned = plan(network, likelihood, self.target_, self.in_shape_, self.positions_, some, integer)
        given = self._weights(sample_weight, x)
        if isinstance(data.weight, Tensor) and len(data.weight) == len(x):  # a row without any target does not count
            counted = data.weight.reshape(len(x), -1).any(1).double()
            given = counted if given is None else given * counted
        inputs = input_units(planned, x, given) if self._standardises() else None
        self.plan_ = planned if inputs is not None else replace(planned, columns=None)
        y, weight = (part.values if isinstance(part, Ragged) else part for part in (data.y, data.weight))
        offset, unit = baseline(likelihood, y, weight, self.positions_, bool(self.plan_.positions))
        problem = Problem(
            build=lambda seed: self.plan_.predictor(network, offset, unit, seed, inputs),
            objective=Conditional(likelihood),
            prior=prior,
            data=data,
            seed=distributed.agreed(seed_of(self.random_state)),
            seeded=self.random_state is not None,
            title=type(self).__name__,
            verbose=bool(self.verbose),
        )
        auto = isinstance(self.inference, str) and self.inference == "auto"
        inference = automatic(problem) if auto else as_spec(self.inference, Inference, "inference")
        problem = problem.with_(
            data=_placed(data, inference.dtype, device, self.plan_.integer),
            encode=lambda X, y, w: self._encode(likelihood, X, y, w, inference.dtype, device),
        )
        refuse(inference, problem.objective)
        check_units(inputs, unit, inference.dtype)
        with _in_range(inference), threads_for(self.plan_.footprint[0] * rows_per_step(inference, len(data))):
            posterior = inference.fit(problem)
        _check_parameters(posterior)
        self.posterior_ = posterior
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def _target(self, likelihood: Likelihood, y: Tensor) -> Target:
        return likelihood.target(y)

    def _encode(self, likelihood: Likelihood, X: Any, y: Any, w: Any, dtype: torch.dtype, device: Any) -> Dataset:
        x = self._inputs(X)
        targets = self._read_targets(y, x, reset=False)
        likelihood.check(targets)
        data = self._dataset(likelihood, x, targets, self._weights(w, x), dtype)
        return _placed(data, dtype, device, self.plan_.integer)

    def _standardises(self) -> bool:
        if not isinstance(self.standardise, bool | np.bool_):
            raise SpecError(f"standardise={self.standardise!r} must be True or False.")
        return bool(self.standardise)

    def _read_targets(self, y: Any, x: Inputs, *, reset: bool) -> Tensor:
        """y of each row, or of each position of `Rows`, as `_targets` reads them."""
        return self._targets(*self._entries(y, x, reset=reset), reset=reset)

    def _entries(self, y: Any, x: Inputs, *, reset: bool) -> tuple[Any, int]:
        """y with an entry for each row, or for each position of `Rows`, one row after the other; how many it needs."""
        everywhere = joined(y, x) if isinstance(x, Rows) else None
        if reset:
            self.everywhere_ = everywhere is not None
        elif (everywhere is not None) != self.everywhere_:
            fitted = "each position" if self.everywhere_ else "each row"
            raise DataError(f"y has another form than in fit, where it had a target for {fitted} of X.")
        if everywhere is None:
            return y, len(x)
        assert isinstance(x, Rows)
        return everywhere, len(x.features)

    def _weights(self, sample_weight: Any, x: Inputs) -> Tensor | None:
        if sample_weight is None or not self.everywhere_ or not isinstance(x, Rows):
            return as_weights(sample_weight, x)
        return as_weights(flat_weights(sample_weight, x), x.features)

    def _dataset(
        self, likelihood: Likelihood, x: Inputs, y: Tensor, weight: Tensor | None, dtype: torch.dtype
    ) -> Dataset:
        positions = tuple(y.shape[1 : y.ndim - likelihood.event_dim])
        y, missing = _filled(likelihood, y)
        if bool(missing.all()):
            raise DataError("y has no target at all: every one is missing (NaN, or missing_label).")
        if weight is not None:
            weight = weight.reshape(-1, *(1 for _ in positions)).expand(-1, *positions)
        if bool(missing.any()):
            weight = torch.where(missing, 0.0, 1.0 if weight is None else weight).double()
        if weight is not None and not bool(weight.any()):
            raise DataError("No target has weight: rows with sample_weight above 0 have no label.")
        if not self.everywhere_ or not isinstance(x, Rows):
            return Dataset(x, y, weight, dtype, positions)
        weights = None if weight is None else Ragged(weight, x.offsets)
        return Dataset(x, Ragged(y, x.offsets), weights, dtype, positions)

    # --- questions ----------------------------------------------------------------------------------------------
    def predict_dist(self, X: Any) -> Distribution:
        """p(y | x, data) of each row: a torch distribution of batch shape (n, *positions).

        Where sequences or graphs have a target at each of their positions, n counts those, one row after the other.
        """
        return self._predictive(self._rows(X))

    def _predictive(self, x: Inputs) -> Distribution:
        return self.posterior_.predictive(self.likelihood_, x)

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x, data) of each row, summed over its positions; a missing target counts 0."""
        x = self._rows(X)
        likelihood = self.likelihood_
        targets = self._read_targets(y, x, reset=False)
        likelihood.check(targets)
        filled, missing = _filled(likelihood, targets)

        def log_prob(rows: Inputs, entries: slice) -> np.ndarray:
            each = self._predictive(rows).log_prob(filled[entries].to(x.device, self.posterior_.dtype))
            return as_array(torch.where(missing[entries].to(x.device), 0.0, each).reshape(len(each), -1).sum(1))

        answer = self._in_blocks(x, log_prob)
        if self.everywhere_ and isinstance(x, Rows):
            return as_array(
                torch.zeros(len(x), dtype=self.posterior_.dtype).index_add(0, x.owner.cpu(), torch.from_numpy(answer))
            )
        return answer

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> Any:
        """Draw n targets for each row from p(y | x, data): an array (n, rows, *positions).

        Where sequences or graphs have a target at each position: a list with an array (n, positions) for each.
        """
        count, x = count_of(n), self._rows(X)
        distribution = self._predictive(x)
        with isolated(self._seed(random_state)):
            return self._parted(self._decode(distribution.sample(torch.Size([count]))), x, axis=1)

    def _in_blocks(self, x: Inputs, answer: Callable[[Inputs, slice], np.ndarray]) -> np.ndarray:
        """`answer(rows, entries)` of blocks of rows, one after the other, with the entries of y that they have.

        What is made of a block on its way through the network is bounded, however many rows there are.
        """
        work, width = self.plan_.footprint
        members = len(self.posterior_.weights)
        step = max(LEAST, BLOCK // (members * max(width, row_size(x))))
        with threads_for(work * members * min(step, len(x))):
            if len(x) <= step:
                return answer(x, slice(None))
            at_positions = self.everywhere_ and isinstance(x, Rows)
            ends = x.offsets.tolist() if at_positions and isinstance(x, Rows) else range(len(x) + 1)
            answers = np.empty(0)
            for first in range(0, len(x), step):
                last = min(first + step, len(x))
                entries = slice(ends[first], ends[last])
                part = answer(x[first:last], entries)
                if not first:
                    answers = np.empty((ends[len(x)], *part.shape[1:]), part.dtype)
                answers[entries] = part
            return answers

    @torch.inference_mode()
    def _point(self, x: Inputs, question: Literal["mean", "probabilities"]) -> Tensor | None:
        """The likelihood's answer where one parameter vector is all there is to ask; None where there are more."""
        return getattr(self.likelihood_, question)(self.posterior_.eta(x)[0]) if self.posterior_.single else None

    def _decode(self, y: Tensor) -> np.ndarray:
        return as_array(y)

    def _parted(self, answers: np.ndarray, x: Inputs, axis: int = 0) -> Any:
        """Answers in the form of y."""
        return parted(answers, x, axis) if self.everywhere_ else answers

    def _rows(self, X: Any) -> Inputs:
        """Rows to ask about, where the posterior is."""
        if "posterior_" not in self.__dict__:
            check_is_fitted(self)
        x = self._inputs(X)
        network = as_network(self.network)
        if isinstance(x, Tensor) and tuple(x.shape[1:]) != self.in_shape_ and not network.any_length:
            raise DataError(f"X has rows of shape {tuple(x.shape[1:])}; the model was fitted on {self.in_shape_}.")
        network.check(x)
        return x.to(self.posterior_.weights.device)

    def _inputs(self, X: Any) -> Inputs:
        """X as it was in `fit`: integers where the network takes those as they are."""
        x = read_inputs(self, X, reset=False)
        if not self.plan_.integer or not x.dtype.is_floating_point:
            return x
        values = x.features if isinstance(x, Rows) else x
        fraction = values[values != values.floor()]
        if len(fraction):
            raise DataError(f"X has the number {fraction[0].item():g}; the model was fitted on integers.")
        return x.to(torch.long)

    @property
    def log_evidence_(self) -> float:
        """log p(y | X), where the inference finds it: `Exact("full")` and `Laplace`."""
        value = self.posterior_.info.get("log_evidence") if "posterior_" in self.__dict__ else None
        if value is None:
            raise AttributeError(f"{type(self).__name__} has log_evidence_ once fitted by Exact('full') or Laplace().")
        return float(value)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of a linear network, averaged over the posterior: (features,), or (k, features) for k numbers."""
        return self._linear_part("weight")

    @property
    def intercept_(self) -> np.ndarray:
        """The biases of a linear network, averaged over the posterior."""
        return self._linear_part("bias")

    def _linear_part(self, name: str) -> np.ndarray:
        parameters = self.posterior_.parameters if hasattr(self, "posterior_") else {}
        if not parameters or not self.plan_.linear:
            raise AttributeError(f"{type(self).__name__} has coefficients once it is fitted with a linear network.")
        found = parameters.get(f"network.{name}")
        weight = parameters["network.weight"]
        value = weight.new_zeros(weight.shape[:2]) if found is None else found  # no bias: 0
        mean = torch.tensordot(self.posterior_.weights.to(value), value, 1)
        return as_array(mean[0] if len(mean) == 1 and not self.likelihood_.labels else mean)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        posterior, tensors = self.posterior_.state()
        names = getattr(self, "feature_names_in_", None)
        learned = {
            "n_features_in": int(self.n_features_in_),
            "feature_names_in": None if names is None else [str(name) for name in names],
            "positions": list(self.positions_),
            "in_shape": list(self.in_shape_),
            "kind": self.kind_,
            "everywhere": self.everywhere_,
            "target": self.target_.to_json(),
            "plan": self.plan_.to_json(),
            "posterior": posterior,
        }
        return learned, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore_columns(self, {f"{name}_": learned[name] for name in ("n_features_in", "feature_names_in")})
        self.positions_, self.in_shape_ = (_sizes(learned, name) for name in ("positions", "in_shape"))
        self.kind_, self.everywhere_ = learned.get("kind", "tensor"), learned.get("everywhere", False)
        if self.kind_ not in KINDS or not isinstance(self.everywhere_, bool):
            raise ModelFileError(f"The file has rows of an unknown kind: {self.kind_!r}, {self.everywhere_!r}.")
        self.target_ = Target.from_json(learned["target"])
        self.plan_ = Plan.from_json(learned["plan"])
        self.likelihood_ = likelihood = self._likelihood()
        names = getattr(self, "feature_names_in_", None)
        width = self.in_shape_[0] if self.kind_ != "sequence" else (*self.in_shape_, 1)[1]
        if width != self.n_features_in_ or (names is not None and len(names) != self.n_features_in_):
            raise ModelFileError("The file does not fit its own specs: its columns are not those of its network.")
        size = likelihood.size(self.target_)
        if self.plan_.shared != likelihood.shared(self.target_) or math.prod(self.positions_) * size > MOST_NUMBERS:
            raise ModelFileError(f"The file does not fit its own specs: {self.target_} has {size} numbers η.")
        unit, bent = "buffers.unit" in tensors, "buffers.inputs.bend" in tensors
        module = self.plan_.blank(as_network(self.network), size, unit=unit, bent=bent)
        posterior = learned["posterior"]
        self.posterior_ = Posterior.kinds[posterior["kind"]].restore(module, posterior, tensors)
        check_restored(self.posterior_.buffers)
        self._check_answer(size)

    @torch.no_grad()
    def _check_answer(self, size: int) -> None:
        """Raise a `ModelFileError` unless the network answers with η of the shape of the targets."""
        x = rows_of_zeros(self.kind_, self.in_shape_)
        x = x.to(torch.long if self.plan_.integer else self.posterior_.dtype)
        eta = functional_call(self.posterior_.module, self.posterior_.member(0), (x,))
        entries = len(x.features) if self.everywhere_ and isinstance(x, Rows) else len(x)
        if tuple(eta.shape) != (entries, *self.positions_, size):
            found = tuple(eta.shape[1:])
            raise ModelFileError(
                f"The file does not fit its own specs: its network gives {found}, not {(*self.positions_, size)}."
            )


def _sizes(learned: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """A shape from a file."""
    sizes = learned[name]
    if not COUNTS.holds(sizes) or 0 in sizes or math.prod(sizes) > MOST_NUMBERS:
        raise ModelFileError(f"The file has {name}={sizes!r}; it must be sizes above 0 that memory can hold.")
    return tuple(sizes)


def as_array(values: Tensor) -> np.ndarray:
    """A tensor of any device as a numpy array."""
    return values.cpu().numpy()


def rows_of(shape: tuple[int, ...]) -> str:
    """How an array with one entry of this shape a row is written.

    >>> rows_of(()), rows_of((3, 4))
    ('(n,)', '(n, 3, 4)')
    """
    return f"(n, {', '.join(map(str, shape))})" if shape else "(n,)"


def _filled(likelihood: Likelihood, y: Tensor) -> tuple[Tensor, Tensor]:
    """y with values inside the support where it is missing, and where that is (without the axes of one target)."""
    missing = likelihood.missing(y)
    if not bool(missing.any()):
        return y, missing
    gap = missing.reshape(*missing.shape, *(1 for _ in range(likelihood.event_dim)))
    return torch.where(gap, likelihood.placeholder(y), y), missing


@contextmanager
def _in_range(inference: Inference) -> Iterator[None]:
    """Numbers beyond what the machine can hold are an error that says what to do."""
    try:
        yield
    except (torch.linalg.LinAlgError, OverflowError, ZeroDivisionError) as error:  # type: ignore[attr-defined]
        raise TrainingError(
            f"{inference!r} cannot solve for the parameters: X or y has numbers that are too large, or too different "
            "in size; standardise them first."
        ) from error


def _check_parameters(posterior: Posterior) -> None:
    for name, value in posterior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(
                f"The fit ended with parameters that are not finite ({name}); standardise X and y first."
            )


def _placed(data: Dataset, dtype: torch.dtype, device: torch.device, integer: bool) -> Dataset:
    """On the device of the fit; y and weights, which are small, in its dtype."""
    y, weight = (None if part is None else part.to(device, dtype) for part in (data.y, data.weight))
    x = data.x.to(device)
    if isinstance(x, Rows) and not integer:
        x = x.to(dtype)  # once, since graphs keep what is made of them
    return Dataset(x, y, weight, dtype, data.positions, integer=integer)
