"""Supervised models: four values make one.

p(y | x) = likelihood( network(x; θ) ),   θ ~ prior,   θ found by inference
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Distribution

from ...core import distributed
from ...core.draws import count_of
from ...core.errors import DataError, SpecError
from ...core.estimator import Estimator
from ...core.random import isolated, seed_of
from ...core.spec import as_spec
from ...core.threads import threads_for
from ...core.validation import device_of
from ...data.rows import Inputs, Ragged, Rows, row_size
from ...inference import Inference, Posterior, Problem, automatic
from ...inference.dataset import Dataset
from ...inference.objective import Conditional, Joint, refuse
from ...inference.work import rows_per_step
from ...likelihoods import Likelihood, Target
from ...likelihoods.offset import Moved
from ...networks import MLP, Linear
from ..reports import Reports
from .build import Sample, baseline, plan
from .coefficients import kept_summary, recorded
from .constants import constants_of
from .files import restore, state_of
from .formulas import opened, unpacked
from .inputs import kind_of, read_inputs, two_rows
from .linear_reports import LinearReports
from .offset import offset_of, part_of, with_offset
from .sizes import check_shape, is_at_each_step, times_larger
from .targets import (
    dataset_of,
    entries_of,
    is_coupled,
    offsets_of_targets,
    placed,
    weights_of,
    weights_of_inputs,
    without_gaps,
)
from .texts import network_of, prior_of
from .units import check_parameters, check_units, in_range, input_units

__all__ = ["Supervised", "as_array"]

BLOCK = 1 << 23
"""Numbers that a block of rows may have in the widest layer, over all members."""
LEAST, MOST = 64, 1 << 26
"""Rows of a block, at least, if they have no more numbers than that."""


class Supervised(LinearReports, Reports, Estimator):
    """What `Classifier` and `Regressor` share: everything but how y is read and what `predict` answers."""

    likelihood: Any
    network: Any
    prior: Any
    inference: Any
    random_state: Any
    device: Any
    verbose: bool
    standardise: bool
    tokens: Any
    likelihood_: Likelihood
    posterior_: Posterior
    offset_: bool = False
    without_intercept_: bool = False
    """Whether the formula of the fit asked for a linear network without a bias."""
    log_prob_kind_: ClassVar[str] = "exact"

    # --- what differs -------------------------------------------------------------------------------------------
    def _likelihood(self) -> Likelihood:
        """The likelihood in force, for the targets seen in `fit`."""
        raise NotImplementedError

    def _targets(self, y: Any, rows: int, positions: tuple[int, ...] | None, *, reset: bool) -> Tensor:
        """y as a tensor (n, *positions, *event), at these positions unless they are None; missing targets are NaN."""
        raise NotImplementedError

    def _informed(self, x: Inputs, targets: Tensor, weight: Tensor | None) -> Inputs:
        """Training rows, with what is known of them beside."""
        return x

    def _reweighted(self, data: Dataset) -> Dataset:
        """The rows of a fit, some of which may count more than others."""
        return data

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Self:
        """Learn θ from rows X and targets y. A missing target (NaN, or `missing_label`) does not count.

        X may be a `likely.formula`, which has both.

        `offset` is added to η of each row, its coefficient known to be 1; `exposure` is for how long, or among how
        many, a row was counted, and multiplies the mean exp(η). Both are asked for again in predictions.
        """
        self.__dict__.pop("posterior_", None)  # a fit that fails leaves no model of other data behind
        X, y, sample_weight, offset, exposure = opened(self, X, y, sample_weight, offset, exposure)
        x = read_inputs(self, X, reset=True)
        self.kind_ = kind_of(x)
        targets = self._read_targets(y, x, reset=True)
        self.likelihood_ = likelihood = self._likelihood()
        network, device = network_of(self), device_of(self.device)
        likelihood.check(targets)
        network.check(x)
        self.positions_ = tuple(targets.shape[1 : targets.ndim - likelihood.event_dim])
        self.target_ = self._target(likelihood, targets)
        coupled = is_coupled(self)
        given = self._weights(sample_weight, x, self.positions_, whole=coupled)
        x = self._informed(x, targets, given)
        self.in_shape_ = x.shape if isinstance(x, Rows) else tuple(x.shape[1:])
        data = dataset_of(likelihood, x, targets, given, torch.float64, offsets_of_targets(self, x), whole=coupled)
        data = self._reweighted(data)
        shift = offset_of(self, x, offset, exposure, needed=False)
        self.offset_ = shift is not None
        family, data = with_offset(likelihood, data, shift)
        two = two_rows(x) if isinstance(x, Rows) else x
        some = Sample(two, offsets_of_targets(self, two)) if isinstance(two, Rows) else None
        integer = not x.dtype.is_floating_point and x.dtype != torch.bool
        coupling = likelihood.coupling(self.target_) if coupled else 0
        planned = plan(network, likelihood, self.target_, self.in_shape_, self.positions_, some, integer, coupling)
        inputs = input_units(planned, x, weights_of_inputs(data, given)) if self._standardises() else None
        self.plan_ = planned if inputs is not None else replace(planned, columns=None)
        data = replace(data, integer=self.plan_.integer)
        y, weight = (part.values if isinstance(part, Ragged) else part for part in (data.y, data.weight))
        weight = (~likelihood.missing(y)).double() if coupled else weight
        start, unit = baseline(family, y, weight, self.positions_, bool(self.plan_.positions))
        problem = Problem(
            build=lambda seed: self.plan_.predictor(network, start, unit, seed, inputs),
            objective=Joint(family) if coupled else Conditional(family, alone=not self.offset_),
            prior=prior_of(self, unit),
            data=data,
            seed=distributed.agreed(seed_of(self.random_state)),
            seeded=self.random_state is not None,
            vocabulary=self.__dict__.get("vocabulary_"),
            title=type(self).__name__,
            verbose=bool(self.verbose),
        )
        auto = isinstance(self.inference, str) and self.inference == "auto"
        inference = automatic(problem) if auto else as_spec(self.inference, Inference, "inference")
        problem = problem.with_(
            data=placed(data, inference.dtype, device, self.plan_.integer),
            encode=lambda X, y, w: self._held_out(likelihood, X, y, w, inference.dtype, device),
        )
        refuse(inference, problem.objective)
        check_units(inputs, unit, inference.dtype, y)
        with in_range(inference), threads_for(self.plan_.footprint[0] * rows_per_step(inference, len(data))):
            posterior = inference.fit(problem)
        check_parameters(posterior)
        self.posterior_ = posterior
        if self.plan_.linear and data.plain:
            exact = placed(data, torch.float64, device, self.plan_.integer)
            posterior.info |= recorded(self, problem, exact, posterior, solved="eta" in inference.needs)
        self._constants = {name: value for name, value in constants_of(self, posterior).items() if math.isfinite(value)}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def _target(self, likelihood: Likelihood, y: Tensor) -> Target:
        return likelihood.target(y)

    def _held_out(self, likelihood: Likelihood, X: Any, y: Any, w: Any, dtype: torch.dtype, device: Any) -> Dataset:
        """Rows that the user keeps for validation."""
        if self.offset_:
            raise DataError(
                "validation=(X, y) has no offset or exposure, and the rows of fit have: let a fraction of those "
                "validate, as in validation=0.1."
            )
        return self._encode(likelihood, X, y, w, dtype, device)

    def _encode(
        self,
        likelihood: Likelihood,
        X: Any,
        y: Any,
        w: Any,
        dtype: torch.dtype,
        device: Any,
        offset: Any = None,
        exposure: Any = None,
    ) -> Dataset:
        x = self._inputs(X)
        targets = self._read_targets(y, x, reset=False)
        likelihood.check(targets)
        coupled = is_coupled(self)
        positions = tuple(targets.shape[1 : targets.ndim - likelihood.event_dim])
        given = self._weights(w, x, positions, whole=coupled)
        data = dataset_of(likelihood, x, targets, given, dtype, offsets_of_targets(self, x), whole=coupled)
        data = self._reweighted(data)
        _, data = with_offset(likelihood, data, offset_of(self, x, offset, exposure, needed=self.offset_))
        return placed(data, dtype, device, self.plan_.integer)

    def _standardises(self) -> bool:
        if not isinstance(self.standardise, bool | np.bool_):
            raise SpecError(f"standardise={self.standardise!r} must be True or False.")
        return bool(self.standardise)

    def _read_targets(self, y: Any, x: Inputs, *, reset: bool) -> Tensor:
        """y of each row, or of each position of the answers, as `_targets` reads them."""
        return self._targets(*entries_of(self, y, x, reset=reset), reset=reset)

    def _weights(
        self, sample_weight: Any, x: Inputs, positions: tuple[int, ...], *, whole: bool = False
    ) -> Tensor | None:
        """Of each target, at these positions of a row, or of each whole row."""
        offsets, positions = (None, ()) if whole else (offsets_of_targets(self, x), positions)
        return weights_of(sample_weight, x, offsets, positions)

    # --- questions ----------------------------------------------------------------------------------------------
    def predict_dist(self, X: Any, offset: Any = None, exposure: Any = None) -> Distribution:
        """p(y | x, data) of each row: a torch distribution of batch shape (n, *positions).

        Where sequences or graphs have targets at positions, n counts those, one row after the other. Where a likelihood
        couples the positions of a row, the distribution is that of whole rows: its batch shape is (n,), and its values
        are (n, *positions), or the positions of all rows one after the other.
        """
        x = self._rows(X)
        with threads_for(self._work(x) * len(x)):
            return self._predictive(x, self._offset(x, offset, exposure))

    def _work(self, x: Inputs) -> int:
        """Multiply-adds of one of these rows, over all members."""
        return int(self.plan_.footprint[0] * times_larger(self, x)) * len(self.posterior_.weights)

    def _offset(self, x: Inputs, offset: Any, exposure: Any) -> Tensor | None:
        return offset_of(self, x, offset, exposure, needed=self.offset_)

    def _predictive(self, x: Inputs, offset: Tensor | None = None) -> Distribution:
        if not is_coupled(self):
            return self.posterior_.predictive(self._asked(offset), x)
        (eta, weights), offsets = self.posterior_.members(x), offsets_of_targets(self, x)
        if offsets is not None:
            return self.likelihood_.joint(eta, weights, offsets)
        length = x.shape[1] if is_at_each_step(self) else self.positions_[0]  # type: ignore[union-attr]
        offsets = torch.arange(0, len(x) * length + 1, length)
        return self.likelihood_.joint(eta.flatten(1, 2), weights, offsets, length)

    def _asked(self, offset: Tensor | None) -> Any:
        """The likelihood for rows with these offsets."""
        return self.likelihood_ if offset is None else Moved(self.likelihood_, offset)

    def log_prob(self, X: Any, y: Any = None, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """log p(y | x, data) of each row, of all its positions together; a missing target counts 0.

        X may be a formula, which has the targets.
        """
        X, y, offset, exposure = unpacked(X, y, offset, exposure)
        x = self._rows(X)
        shift = self._offset(x, offset, exposure)
        likelihood = self.likelihood_
        targets = self._read_targets(y, x, reset=False)
        likelihood.check(targets)
        if is_coupled(self):  # which sums out what is missing
            y = targets.to(self.posterior_.weights.device, self.posterior_.dtype)
            return self._in_blocks(x, lambda rows, own: as_array(self._predictive(rows).log_prob(y[own])), whole=True)
        filled, missing = without_gaps(likelihood, targets)

        def log_prob(rows: Inputs, entries: slice) -> np.ndarray:
            targets = filled[entries].to(x.device, self.posterior_.dtype)
            log_probs = self._predictive(rows, part_of(shift, entries)).log_prob(targets)
            log_probs = torch.where(missing[entries].to(x.device), 0.0, log_probs)
            return as_array(log_probs.flatten(1).sum(1) if log_probs.ndim > 1 else log_probs)

        answer = self._in_blocks(x, log_prob)
        starts = offsets_of_targets(self, x)
        if starts is None:
            return answer
        entries = Ragged(torch.from_numpy(answer), starts.cpu())
        return as_array(torch.zeros(len(x), dtype=entries.dtype).index_add(0, entries.owner, entries.values))

    def sample(self, X: Any, n: int = 1, random_state: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        """Draw n targets for each row from p(y | x, data): an array (n, rows, *positions).

        Where sequences or graphs have a target at each position: a list with an array (n, positions) for each.
        """
        size, x = torch.Size([count_of(n)]), self._rows(X)
        shift = self._offset(x, offset, exposure)

        def draws(rows: Inputs, entries: slice) -> np.ndarray:
            return self._decode(self._predictive(rows, part_of(shift, entries)).sample(size)).swapaxes(0, 1)

        with isolated(self._seed(random_state)):
            return self._parted(np.ascontiguousarray(self._in_blocks(x, draws).swapaxes(0, 1)), x, axis=1)

    def _in_blocks(
        self, x: Inputs, answer: Callable[[Inputs, slice], np.ndarray], *, whole: bool = False
    ) -> np.ndarray:
        """`answer(rows, entries)` of blocks of rows, one after the other, with the entries of y that they have.

        An answer is of each of these entries, or of each `whole` row. What is made of a block on its way through the
        network is bounded, however many rows there are.
        """
        width, members = int(self.plan_.footprint[1] * times_larger(self, x)), len(self.posterior_.weights)
        each = members * max(width, row_size(x))
        step = max(1, min(LEAST, MOST // each), BLOCK // each)
        with threads_for(self._work(x) * min(step, len(x))):
            if len(x) <= step:
                return answer(x, slice(None))
            offsets = offsets_of_targets(self, x)
            ends = range(len(x) + 1) if offsets is None else offsets.tolist()
            answers = np.empty(0)
            for first in range(0, len(x), step):
                last = min(first + step, len(x))
                entries = slice(ends[first], ends[last])
                part = answer(x[first:last], entries)
                if not first:
                    answers = np.empty((len(x) if whole else ends[len(x)], *part.shape[1:]), part.dtype)
                answers[slice(first, last) if whole else entries] = part
            return answers

    @torch.inference_mode()
    def _point(
        self, x: Inputs, question: Literal["mean", "probabilities"], offset: Tensor | None = None
    ) -> Tensor | None:
        """The likelihood's answer where one parameter vector and one target is all there is to ask; None elsewhere."""
        if not self.posterior_.single or is_coupled(self):
            return None
        return getattr(self._asked(offset), question)(self.posterior_.eta(x)[0])

    def _decode(self, y: Tensor) -> np.ndarray:
        return as_array(y)

    def _parted(self, answers: np.ndarray, x: Inputs, axis: int = 0) -> Any:
        """Answers in the form of y."""
        offsets = offsets_of_targets(self, x)
        return answers if offsets is None or not isinstance(x, Rows) else x.parted(answers, axis, offsets)

    def _rows(self, X: Any) -> Inputs:
        """Rows to ask about, where the posterior is."""
        if "posterior_" not in self.__dict__:
            check_is_fitted(self)
        x = self._inputs(X)
        network = network_of(self)
        check_shape(self, x)
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

    # --- scikit-learn and files ---------------------------------------------------------------------------------
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        network = self.__dict__.get("network")
        tags.input_tags.sparse = isinstance(network, Linear | MLP)  # they begin with a linear layer
        return tags

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = state_of(self)
        learned |= {"without_intercept": True} if self.without_intercept_ else {}
        told = kept_summary(self)  # for who reads the file without building the model
        return learned | ({} if told is None else {"summary": told}), tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.without_intercept_ = learned.get("without_intercept", False) is True
        restore(self, learned, tensors)


def as_array(values: Tensor) -> np.ndarray:
    """A tensor of any device as a numpy array."""
    return values.cpu().numpy()
