"""Autoregressive: a row as a chain of columns, each given the ones before it (MADE).

p(x) = Πⱼ p(xⱼ | x_<j),      ηⱼ = network(x_<j; θ),      K orders:  p(x) = 1/K Σₒ pₒ(x)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core.errors import SpecError
from ...core.random import isolated
from ...core.spec import is_integer
from ...inference import MAP, Inference
from ...likelihoods import Likelihood
from ...networks import MLP, as_network
from ...optim import AdamW
from ...priors import Flat, Prior
from .base import _Generative
from .constants import warn_of_constants, warn_of_copies
from .masked_density import MaskedDensity
from .module import DensityModule, ask
from .rounding import number_likelihood, step_of

__all__ = ["Autoregressive"]

STEPS = 2_000
"""Steps of gradient training that `inference="auto"` takes, more or less."""
DECAY = 1e-2
"""Weight decay of `inference="auto"`."""


class Autoregressive(_Generative):
    """The distribution of a row as a product of conditionals, one for each column, that one masked network gives.

    `likelihood` is that of a column: one for all, a sequence with one for each, a dict by name, or "auto":
    `Categorical` for text, `Bernoulli` for 0/1, and for numbers a mixture of Normals (`NormalMixture`), rounded as the
    data are, whose draws stay inside the range of the training rows. `network` is an `MLP` (or `Linear`), whose masked
    form lets each column see the ones before it; `residual="dense"` also hands the columns to the last layer directly.
    The first of `orders` is that of the columns, the others are random. Orders share their weights, gradient training
    takes one of them at random for each batch, and answers average p over all of them.

    `log_prob` is exact. A missing value has no term of its own: where the training rows had gaps, later columns see
    that it is missing; where they had none, it is summed over by weighted draws (and `return_error=True` tells their
    error). `impute` and `sample` with some columns fixed draw in the order that has most of what is observed first;
    they are exact if all of it comes before the gaps, and otherwise weigh candidates by what is observed later.

    >>> import numpy as np
    >>> from likely.inference import MAP
    >>> from likely.networks import Linear
    >>> X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]])
    >>> model = Autoregressive(network=Linear(), inference=MAP("adam(0.1)", epochs=200), random_state=0).fit(X)
    >>> np.exp(model.log_prob([[0, 0], [0, 1], [1, 0], [1, 1]])).round(2)
    array([0.33, 0.17, 0.17, 0.33])
    """

    likelihood: Any
    network: Any
    orders: int

    def __init__(
        self,
        likelihood: Any = "auto",
        network: Any = MLP((256,), dropout=0.3, residual="dense"),  # noqa: B008
        orders: int = 1,
        prior: Prior = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.likelihood, self.network, self.orders = likelihood, network, orders
        self.prior, self.inference, self.random_state = prior, inference, random_state
        self.device, self.verbose = device, verbose

    def _check_arguments(self) -> None:
        if not is_integer(self.orders) or self.orders > 1_000:
            raise SpecError(f"orders={self.orders!r}: must be an integer from 1 to 1,000.")
        as_network(self.network)

    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        if len(self.form_.shape) == 1:
            dense = [column for column in range(x.shape[1]) if self._has_density(column, x[:, column])]
            own = torch.full_like(x, torch.nan, dtype=torch.float64)
            own[:, dense] = x[:, dense].double()
            warn_of_constants(self, own)
            warn_of_copies(self, x, dense)

    def _has_density(self, column: int, values: Tensor) -> bool:
        """Whether a column has a density, which can rise without bound; rounded numbers have probabilities."""
        if self.form_.columns and self.form_.columns[column].kind != "number":
            return False
        if isinstance(self.likelihood, Likelihood):
            return not self.likelihood.support.is_discrete
        return step_of(values[~values.isnan()]) is None

    def _marginalises(self) -> bool:
        return True

    def _number_likelihood(self, column: Tensor) -> Likelihood:
        return number_likelihood(column)

    def _module(self) -> DensityModule:
        return MaskedDensity(
            self.columns_,
            self.form_.shape,
            self.network,
            self.orders,
            None if self.condition_ is None else self.condition_.shape,
            missing=self.missing_,
            inside=isinstance(self.likelihood, str) and self.likelihood == "auto",
        )

    def _automatic(self, rows: int) -> Inference:
        """Adam with decoupled weight decay until held-out rows gain no more, and the weights that were best there."""
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(500, math.ceil(STEPS * batch / rows)))
        held_out = 0.1 if rows >= 100 else None
        patience = None if held_out is None else max(10, epochs // 5)
        optimizer = AdamW(2e-3, weight_decay=DECAY)
        return MAP(optimizer, epochs=epochs, batch_size=batch, validation=held_out, patience=patience)

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None, *, condition: Any = None) -> Any:
        """X with each NaN filled by its mean given the rest of the row (a label by the most probable one).

        With `draws`, so many fillings drawn from that distribution: (draws, n, …), or a list of tables. The mean is
        exact for a gap that is the only one and comes last in one of the orders, and one of weighted draws elsewhere.
        """
        if draws is not None:
            return super().impute(X, draws, random_state, condition=condition)
        x, given = self._asked(X, condition, cast=False)
        out = x.double().flatten(1).clone()
        rows = out.isnan().any(1).nonzero().ravel()
        if not len(rows):
            return self.form_.given(x.double())
        inputs = self._placed(x[rows])
        total: Any = 0.0
        for member, weight in enumerate(self.posterior_.weights.tolist()):
            own = None if given is None else given[rows]
            with isolated(self._seed_of_question(random_state, member)):
                total = total + weight * self._cpu(ask(self.posterior_, member, "expected", inputs, own))
        for column, slot in enumerate(self.posterior_.module.slots):  # type: ignore[arg-type, union-attr]
            values = total[:, slot]
            best = values.argmax(1).double() if values.shape[1] > 1 else values[:, 0]
            out[rows, column] = torch.where(out[rows, column].isnan(), best, out[rows, column])
        return self.form_.given(out.unflatten(1, self.form_.shape), x.isnan())
