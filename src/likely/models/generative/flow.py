"""Flow: a normalising flow, an invertible map from data to noise with its exact density.

log p(x) = log p(z) + log |det ∂z/∂x|,      z = f(x; θ),      x = f⁻¹(z; θ)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...core.errors import DataError, ModelFileError, SpecError
from ...core.spec import as_spec, is_integer
from ...inference import MAP, Inference
from ...inference.objective import RowDensity
from ...likelihoods import Likelihood
from ...networks import MLP
from ...networks.base import as_network
from ...networks.masked import has_masked_form, masked_network
from ...optim import Adam, AdamW, Cosine
from ...priors import Flat
from .base_density import BASES, BaseDensity
from .codes import _Codes
from .constants import warn_of_constants, warn_of_copies
from .features import Features
from .flow_module import FlowModule
from .masked_density import MaskedDensity
from .module import DensityModule
from .rounding import number_likelihood, step_of
from .table_flow import TableFlow, columns_among
from .transforms import Continuous, Transform, stack
from .transforms.base import _Elementwise
from .transforms.stack import as_image

__all__ = ["Flow"]

ORDERS, MIXINGS = ("coupling", "autoregressive"), ("permutation", "linear")
STEPS = 6_000
"""Steps of gradient training that `inference="auto"` takes, more or less."""
TABLE_STEPS = 600
"""Steps on tables with labels, where flows learn by heart sooner."""
NETWORK = MLP((64, 64))
FEW = 64
"""Different numbers of a rounded column of a table that count as few: it joins the chain of labels."""
CHAIN = MLP((256,), dropout=0.3, residual="dense")
"""The network of that chain, as `Autoregressive` has it."""
DRAWS = 8
"""Places within an integer's unit at which `log_prob` looks, unless told."""


class Flow(_Codes):
    """p(x) by change of variables: rows are mapped to noise, and noise to new rows.

    `transform` says how a layer maps rows: "spline" (`Spline(bins, bound)`), "affine", "planar", "radial" or
    "continuous". All are trained by likelihood but the last, which is trained by flow matching unless it is given as
    `Continuous(training="likelihood")`. Splines and affine maps have their parameters from a `network`, in an `order`:
    "coupling", where half of the columns move as the other half says, quick both ways; or "autoregressive", where each
    column moves as those before it say: a better density, and draws that cost a step for each column.
    `mixing` is what happens between layers: a "permutation" of the columns, or a "linear" map that is learned. `base`
    is the density of z: "normal", "logistic" or "student_t", which learns its tails.

    Images go through networks with an answer per pixel (`UNet`, the convolutions of a `ConvNet`); an MLP takes them for
    plain numbers. Columns of integers are spread over their unit (`dequantise=False` leaves them): draws are integers
    again, and log p is a bound on the log-probability of the integer. So are columns of tables with other steps, such
    as 0.25. In a table with labels, rounded columns of few different numbers (64 at most) join the chain of labels,
    as rounded mixtures: a flow has no place for numbers that many rows share; what is left is a flow given that chain.
    A column that has no negative number, where a normal of its mean and variance would have 10 or more, has none in
    draws either: p(x) is 0 below 0.

    >>> import numpy as np
    >>> from likely.inference import MAP
    >>> x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    >>> flow = Flow("affine", layers=2, network=MLP((8,)), inference=MAP(epochs=20), random_state=0).fit(x)
    >>> z = flow.transform(x)
    >>> np.allclose(flow.inverse_transform(z), x, atol=1e-4), flow.sample(3).shape
    (True, (3, 2))
    """

    integers_: tuple[int, ...]

    def __init__(
        self,
        transform: Any = "spline",
        order: str = "coupling",
        layers: int = 5,
        network: Any = MLP((64, 64)),  # noqa: B008
        base: str = "normal",
        mixing: str = "linear",
        dequantise: bool = True,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.transform, self.order, self.layers, self.network = transform, order, layers, network
        self.base, self.mixing, self.dequantise = base, mixing, dequantise
        self.prior, self.inference, self.random_state = prior, inference, random_state
        self.device, self.verbose = device, verbose

    # --- what kind of density -----------------------------------------------------------------------------------
    @property
    def log_prob_kind_(self) -> str:  # type: ignore[override]
        """Exact; a bound where columns are integers; an estimate where the trace is."""
        spec = self._spec()
        if isinstance(spec, Continuous) and spec.trace == "hutchinson":
            return "estimate"
        spread = set(getattr(self, "integers_", ()))
        return "bound" if spread - set(self._labels() if "columns_" in vars(self) else ()) else "exact"

    def _objective(self) -> RowDensity:
        matching = self._matches()
        if self.log_prob_kind_ == "exact" and not matching:
            return RowDensity("Flow")
        name = "Flow by flow matching" if matching else "Flow"
        return RowDensity(name, "bound", random=True)

    def _matches(self) -> bool:
        spec = self._spec()
        return isinstance(spec, Continuous) and spec.training == "matching"

    def _spec(self) -> Transform:
        return as_spec(self.__dict__["transform"], Transform, "transform")

    def _check_arguments(self) -> None:
        spec = self._spec()
        for name, known in (("order", ORDERS), ("base", BASES), ("mixing", MIXINGS)):
            value = getattr(self, name)
            if value not in known:
                raise SpecError(f"Flow({name}={value!r}): {name} must be one of {', '.join(known)}.")
        if not is_integer(self.layers) or self.layers > 1_000:
            raise SpecError(f"Flow(layers={self.layers!r}): layers must be an integer from 1 to 1,000.")
        if not isinstance(self.dequantise, bool):
            raise SpecError(f"Flow(dequantise={self.dequantise!r}): dequantise must be True or False.")
        if self.order == "autoregressive" and isinstance(spec, _Elementwise):
            masked_network(self.network, [0, 1], [0, 1])  # says which networks can be masked
        as_network(self.network)

    # --- rows ---------------------------------------------------------------------------------------------------
    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        flat, shape = x.flatten(1).double(), self.form_.shape
        labels = torch.zeros(flat.shape[1], dtype=torch.bool)
        if len(shape) == 1:
            labels = ((flat == 0) | (flat == 1)).all(0)
            labels |= torch.tensor([c.kind != "number" for c in self.form_.columns] or [False] * flat.shape[1])
            if bool(labels.all()):
                raise DataError("Every column of X has labels, and a flow is a density of numbers; use Autoregressive.")
        if as_image(self._spec(), shape, self.network) and shape[0] == 1 and any(side % 2 for side in shape[1:]):
            raise DataError(f"X has images of {shape[1]} × {shape[2]} pixels; sides must be even, to be folded.")
        whole = (flat == flat.round()).all(0)
        for column, recorded in enumerate(self.form_.recorded):
            whole[column] |= len(recorded) > 1 and step_of(torch.tensor(recorded, dtype=torch.float64)) is not None
        whole &= ~labels & self.dequantise
        self.integers_ = tuple(whole.nonzero().ravel().tolist())
        if len(shape) == 1:
            dense = ~labels & ~whole
            warn_of_constants(self, torch.where(dense, flat, torch.nan))
            warn_of_copies(self, flat, dense.nonzero().ravel().tolist())

    # --- fitting ------------------------------------------------------------------------------------------------
    def _module(self) -> DensityModule:
        shape, told = self.form_.shape, None if self.condition_ is None else self.condition_.shape
        labels = self._labels()
        if not labels:
            return self._flow(shape, told, self._steps(range(math.prod(shape))))
        numbers = [column for column in range(shape[0]) if column not in labels]
        own = columns_among(self.columns_, labels)
        features = Features(own, (len(labels),), missing=False)
        chosen = self.network != NETWORK and isinstance(as_network(self.network), MLP)
        network = self.network if chosen and has_masked_form(self.network) else CHAIN
        chain = MaskedDensity(own, (len(labels),), network, condition=told, inside=True)
        wide = features.size + (0 if told is None else math.prod(told))
        return TableFlow(labels, numbers, chain, features, self._flow((len(numbers),), (wide,), self._steps(numbers)))

    def _number_likelihood(self, column: Tensor) -> Likelihood:
        return number_likelihood(column)

    def _labels(self) -> list[int]:
        """Columns of labels, in a table or an array of numbers and labels; in a table also those of few numbers.

        One column at least is left to the flow.
        """
        if len(self.form_.shape) != 1:
            return []
        labels = self.columns_.label_columns().nonzero().ravel().tolist()
        few = {c: len(self.form_.recorded[c]) for c in self.integers_ if self.form_.recorded and self.form_.recorded[c]}
        few = {column: count for column, count in few.items() if count <= FEW}
        if labels and few and len(labels) + len(few) == self.form_.shape[0]:
            few.pop(max(few, key=lambda column: few[column]))
        return sorted([*labels, *few]) if labels else []

    def _steps(self, columns: Sequence[int]) -> dict[int, float]:
        """The steps of those columns of numbers, by place, that are spread over them: 1, or what a table has."""
        steps = {}
        for place, column in enumerate(columns):
            if column in self.integers_:
                recorded = self.form_.recorded[column] if self.form_.recorded else ()
                step = step_of(torch.tensor(recorded, dtype=torch.float64)) if len(recorded) > 1 else 1.0
                steps[place] = step or 1.0
        return steps

    def _flow(
        self, shape: tuple[int, ...], condition: tuple[int, ...] | None, steps: Mapping[int, float]
    ) -> FlowModule:
        """A new flow of rows of this shape."""
        spec, image = self._spec(), as_image(self._spec(), shape, self.network)
        own = shape if image else (math.prod(shape),)
        layers = stack(
            spec,
            own,
            order=self.order,  # type: ignore[arg-type]
            layers=self.layers,
            network=self.network,
            mixing=self.mixing,  # type: ignore[arg-type]
            condition=condition,
        )
        return FlowModule(layers, BaseDensity(self.base, own), shape, image=image, steps=steps)

    def _automatic(self, rows: int) -> Inference:
        """Adam along a cosine, and the weights that were best on held-out rows: flows learn few rows by heart."""
        if self._matches():  # its loss is too noisy to choose weights by; large batches share their targets
            batch = min(512, max(16, rows // 4))
            return MAP(
                Adam(3e-3), epochs=max(20, min(2_000, STEPS * batch // rows)), batch_size=batch, schedule=Cosine()
            )
        held_out = 0.1 if rows >= 100 else None
        if any(column.kind != "number" for column in self.form_.columns):  # few rows tell less of mixed columns
            batch = min(128, max(16, rows // 8))
            epochs = max(20, min(500, math.ceil(TABLE_STEPS * batch / rows)))
            optimizer = AdamW(5e-3, weight_decay=1e-2)
            return MAP(
                optimizer, epochs=epochs, batch_size=batch, schedule=Cosine(), validation=held_out, clip_norm=5.0
            )
        batch = min(256, max(16, rows // 8))
        epochs = max(20, min(500, STEPS * batch // rows))
        return MAP(Adam(5e-3), epochs=epochs, batch_size=batch, schedule=Cosine(), validation=held_out, clip_norm=5.0)

    def _draws(self, draws: int | None) -> int:
        return DRAWS if draws is None and self.log_prob_kind_ != "exact" else super()._draws(draws)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        return learned | {"integers": list(self.integers_)}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        width = math.prod(learned["form"]["shape"])
        self.integers_ = tuple(learned["integers"])
        if not all(type(column) is int and 0 <= column < width for column in self.integers_):
            raise ModelFileError(f"The file has integer columns {learned['integers']!r} of rows with {width}.")
        super()._restore(learned, tensors)
