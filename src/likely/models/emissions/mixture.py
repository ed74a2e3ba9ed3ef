"""A mixture as the emission of each state: M components in each of K.

    p(x | k) = Σₘ wₖₘ p(x | k, m),      p(k, m | x) = p(k | x) · wₖₘ p(x | k, m) / p(x | k)

Inside there is one emission of K·M components, so that any emission can be mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.declared import COUNT, SIMPLEX, Array, Arrays, Range
from ...core.errors import ModelFileError, SpecError
from ...inference.latent.simplex import from_sticks, to_sticks
from .base import Emission, Params
from .starts import features, first_weights

__all__ = ["MixtureEmission", "describe", "rebuild"]

LOG_SIMPLEX = Range("logarithms of probabilities that sum to 1", lambda a: SIMPLEX.holds(np.exp(np.minimum(a, 1.0))))

LEAST = 1e-100
"""A mixing weight does not fall below this: its logarithm stays a number."""


class MixtureEmission(Emission):
    """K mixtures of M components of `inner`; the parameters are those of K·M components and the logarithms of weights.

    >>> from likely.models.emissions import Columns
    >>> from likely.likelihoods import Poisson
    >>> x = torch.tensor([[1.0], [9.0], [40.0], [60.0]])
    >>> mixed = MixtureEmission(Columns.of(Poisson(), x), 2)
    >>> mixed.bind(x, None)
    >>> totals = mixed.zeros(1, 2)
    >>> state = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]], dtype=torch.float64)
    >>> mixed.accumulate(totals, None, x, state, slice(0, 4))
    >>> sorted(mixed.maximise(None, totals)["eta"].exp().ravel().round().tolist())
    [1.0, 9.0, 40.0, 60.0]
    """

    def __init__(self, inner: Emission, components: int) -> None:
        self.inner, self.components = inner, components
        self.smoothing = inner.smoothing
        self._last: tuple[Params, Tensor, Params, Tensor] | None = None

    # --- data ---------------------------------------------------------------------------------------------------
    def check(self, x: Tensor, name: str = "X") -> None:
        self.inner.check(x, name)

    def bind(self, x: Tensor, weight: Tensor | None) -> None:
        self._last = None
        self.inner.bind(x, weight)

    # --- the distribution ---------------------------------------------------------------------------------------
    def log_prob(self, params: Params, x: Tensor) -> Tensor:
        return (self._inside(params, x)[1] + params["mixing"]).logsumexp(-1)

    def background(self, params: Params, x: Tensor, log_prob: Tensor, fraction: Tensor) -> Tensor:
        inner, inside = self._inside(params, x)
        return self.inner.background(inner, x, inside.flatten(-2), fraction)

    # --- as a density -------------------------------------------------------------------------------------------
    def to_free(self, params: Params) -> Params:
        return {**self.inner.to_free(_without_mixing(params)), "mixing": to_sticks(params["mixing"].exp())}

    def from_free(self, free: Params) -> Params:
        return {**self.inner.from_free(_without_mixing(free)), "mixing": from_sticks(free["mixing"]).log()}

    def smooth_log_prob(self, params: Params, x: Tensor) -> Tensor:
        inside = self.inner.smooth_log_prob(_without_mixing(params), x).unflatten(-1, (-1, self.components))
        return (inside + params["mixing"]).logsumexp(-1)

    def finished(self, params: Params) -> Params:
        return {**self.inner.finished(_without_mixing(params)), "mixing": params["mixing"]}

    def sample(self, params: Params, component: Tensor) -> Tensor:
        chosen = torch.multinomial(params["mixing"][component].exp(), 1)[:, 0]
        return self.inner.sample(_without_mixing(params), component * self.components + chosen)

    def expected(self, params: Params, x: Tensor, responsibility: Tensor) -> Tensor:
        joint = self._component_posterior(params, x) * responsibility.unsqueeze(-1)  # (n, K, M)
        return self.inner.expected(_without_mixing(params), x, joint.flatten(1))

    def filled(self, params: Params, x: Tensor, component: Tensor) -> Tensor:
        own = self._component_posterior(params, x)[torch.arange(len(x)), component]
        chosen = torch.multinomial(own, 1)[:, 0]
        return self.inner.filled(_without_mixing(params), x, component * self.components + chosen)

    def _component_posterior(self, params: Params, x: Tensor) -> Tensor:
        """p(m | x, k), (n, K, M), for parameters without an axis of starts."""
        one = {name: value.unsqueeze(0) for name, value in params.items()}
        return (self._inside(one, x)[1][:, 0] + params["mixing"]).softmax(-1)

    def _inside(self, params: Params, x: Tensor) -> tuple[Params, Tensor]:
        """The inner parameters and log p(x | k, m), (n, S, K, M). An E-step asks for the same block three times."""
        if self._last is None or self._last[0] is not params or self._last[1] is not x:
            inner = _without_mixing(params)
            self._last = params, x, inner, self.inner.log_prob(inner, x).unflatten(-1, (-1, self.components))
        return self._last[2:]

    # --- sums and estimates -------------------------------------------------------------------------------------
    def zeros(self, starts: int, components: int) -> Params:
        mixing = torch.zeros(starts, components, self.components, dtype=torch.float64)
        return {**self.inner.zeros(starts, components * self.components), "mixing": mixing}

    def accumulate(self, totals: Params, params: Params | None, x: Tensor, weight: Tensor, rows: slice) -> None:
        inner, posterior = None, None
        if params is not None:
            inner, inside = self._inside(params, x)
            posterior = (inside + params["mixing"]).softmax(-1).nan_to_num_()  # NaN where no component is possible
        joint = (self._first_posterior(x, weight) if posterior is None else posterior) * weight.unsqueeze(-1)
        totals["mixing"] += joint.sum(0)
        self.inner.accumulate(_without_mixing(totals), inner, x, joint.flatten(-2), rows)

    def maximise(self, params: Params | None, totals: Params) -> Params:
        counts = totals["mixing"]
        sums = counts.sum(-1, keepdim=True)
        even = torch.full_like(counts, 1 / self.components)
        mixing = torch.where(sums > 0, counts / sums.clamp_min(1e-300), even).clamp_min(LEAST)
        inner = self.inner.maximise(None if params is None else _without_mixing(params), _without_mixing(totals))
        return {**inner, "mixing": mixing.log()}

    def free(self, components: int) -> int:
        return self.inner.free(components * self.components) + components * (self.components - 1)

    def _first_posterior(self, x: Tensor, weight: Tensor) -> Tensor:
        """Each state's rows in M clusters: (n, S, K, M)."""
        points = features(x)
        responsibility = torch.full((*weight.shape, self.components), 1 / self.components, dtype=torch.float64)
        for start in range(weight.shape[1]):
            for state in range(weight.shape[2]):
                own = weight[:, start, state] > 0
                if int(own.sum()) >= self.components:
                    seed = start * weight.shape[2] + state
                    responsibility[own, start, state] = first_weights(
                        points[own.numpy()], self.components, seed, "k-means++"
                    )
        return responsibility

    # --- files --------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        return {"components": self.components, "inner": describe(self.inner)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MixtureEmission:
        """The inverse of `to_json`."""
        if not COUNT.holds(data["components"]) or data["components"] < 1:
            raise ModelFileError(f"The file has mixtures of {data['components']!r} components; it must be an integer.")
        return MixtureEmission(rebuild(data["inner"]), data["components"])

    @property
    def width(self) -> int:
        return self.inner.width

    def arrays(self) -> Arrays:
        return {"mixing": Array(f"K {self.components}", LOG_SIMPLEX)}

    def check_params(self, params: Params, components: int, columns: int) -> None:
        super().check_params({name: params[name] for name in params if name == "mixing"}, components, columns)
        self.inner.check_params(_without_mixing(params), components * self.components, columns)


def describe(emission: Emission) -> dict[str, Any]:
    """An emission of any kind as plain data."""
    return {"kind": type(emission).__name__, **emission.to_json()}


def rebuild(data: Mapping[str, Any]) -> Emission:
    """The emission that `describe` described.

    >>> from likely.models.emissions import Columns
    >>> from likely.likelihoods import Poisson
    >>> counts = Columns.of(Poisson(), torch.ones(3, 2))
    >>> rebuild(describe(counts)).parts == counts.parts
    True
    """
    known = {kind.__name__: kind for kind in _kinds(Emission)}
    if data["kind"] not in known:
        raise SpecError(f"Unknown kind of emission {data['kind']!r}; known: {', '.join(sorted(known))}.")
    kind, rest = known[data["kind"]], {name: value for name, value in data.items() if name != "kind"}
    emission: Emission = kind.from_json(rest) if hasattr(kind, "from_json") else kind(**rest)
    return emission


def _kinds(base: Any) -> Iterator[Any]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _without_mixing(params: Params) -> Params:
    """What belongs to the emission inside; sums are shared, not copied."""
    return {name: value for name, value in params.items() if name != "mixing"}
