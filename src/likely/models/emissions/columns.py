"""Columns: any likelihood as an emission. The columns of a row are independent given the component.

    log p(x | k) = Σⱼ log p(xⱼ | ηₖⱼ),      ηₖⱼ ← argmax Σᵢ wᵢₖ log p(xᵢⱼ | η) + ε·meanᵢ log p(xᵢⱼ | η)

Each component sees, beside its own rows, all rows with a total weight of ε (`smoothing`): it can neither shrink to a
point nor be left with no data at all, whatever the likelihood. A missing value (NaN) does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...core.declared import AMOUNT, Array, Arrays
from ...core.errors import DataError, ModelFileError, SpecError
from ...core.spec import as_spec
from ...likelihoods import Likelihood, Product, Target
from ...probability.supports import ends_of
from .base import Emission, Params
from .part import Part, blocks

__all__ = ["Columns"]

SAMPLE = 10_000
"""Rows that say in what units η is measured."""
KEPT = 2**20
"""Up to so many numbers in all, what they add to sums is kept between the steps of EM."""


class Columns(Emission):
    """The likelihoods of the columns: one for all, a sequence with one for each, a dict by name, or a `Product`.

    >>> from likely.likelihoods import Poisson
    >>> x = torch.tensor([[1.0], [3.0], [10.0]])
    >>> counts = Columns.of(Poisson(), x)
    >>> counts.bind(x, None)
    >>> totals = counts.zeros(1, 2)
    >>> weight = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], dtype=torch.float64)
    >>> counts.accumulate(totals, None, x, weight, slice(0, 3))
    >>> counts.maximise(None, totals)["eta"].exp().ravel().round(decimals=4).tolist()
    [2.0, 10.0]
    """

    def __init__(self, parts: Sequence[Part], smoothing: float = 1e-6) -> None:
        self.parts = tuple(parts)
        self.smoothing = smoothing
        self.origin = torch.zeros(self.parts[-1].columns.stop, dtype=torch.float64)

    @staticmethod
    def of(likelihood: Any, x: Tensor, names: Sequence[str] | None = None, smoothing: float = 1e-6) -> Columns:
        """The emission of these columns; what the likelihood leaves to the data (classes, lengths) is read from x."""
        width = x.shape[1]
        shown = [str(name) for name in names] if names is not None else [str(j) for j in range(width)]
        labels = [f"column {name!r} of X" for name in shown] if width > 1 else ["X"]
        pieces = _pieces(likelihood, shown)
        parts, start = [], 0
        for index, piece in enumerate(pieces):
            known = piece.known_target()
            wide = known.shape[0] if known is not None and known.shape else 1
            if piece.event_dim and known is None:
                wide = width - start - (len(pieces) - index - 1)
            stop = start + wide
            if stop > width:
                break
            parts.append(Part(piece, slice(start, stop), known or Target(), tuple(labels[start:stop])))
            start = stop
        if start != width or len(parts) != len(pieces):
            needed = sum(_least(piece) for piece in pieces)
            raise DataError(f"X has {width} columns, but the {len(pieces)} likelihoods describe {needed}.")
        settled = []
        for part in _joined(parts):
            part.check(x)
            settled += [part] if part.likelihood.known_target() is not None else _bound(part, x)
        return Columns(_joined(settled), smoothing)

    # --- data ---------------------------------------------------------------------------------------------------
    def check(self, x: Tensor, name: str = "X") -> None:
        for part in self.parts:
            renamed = tuple(own.removesuffix("X") + name for own in part.names)
            replace(part, names=renamed).check(x)

    def bind(self, x: Tensor, weight: Tensor | None) -> None:
        self._rows: Tensor = x
        self._middle: tuple[Tensor, Tensor] | None = None
        self._measured: dict[int, Tensor | None] = {}
        self._weight: Tensor = torch.ones(len(x), dtype=torch.float64) if weight is None else weight.double()
        # A point in the middle of the data, from which sums lose the fewest digits.
        total, count = torch.zeros_like(self.origin), torch.zeros_like(self.origin)
        for rows in blocks(x):
            some = rows.double().sum(0)
            missing = bool(some.isnan().any())
            total += rows.double().nansum(0) if missing else some
            count += (~rows.isnan()).sum(0) if missing else len(rows)
        self.origin = total / count.clamp_min(1)

    # --- the distribution ---------------------------------------------------------------------------------------
    def log_prob(self, params: Params, x: Tensor) -> Tensor:
        eta = params["eta"]
        first, *others = zip(self.parts, self._split(eta.flatten(0, 1)), strict=True)
        total = first[0].log_prob(first[1], x)
        for part, own in others:
            total += part.log_prob(own, x)
        return total.unflatten(-1, eta.shape[:2])

    # --- as a density -------------------------------------------------------------------------------------------
    def to_free(self, params: Params) -> Params:
        middle, unit = self._units()
        return {"eta": (params["eta"] - middle) / unit}

    def from_free(self, free: Params) -> Params:
        middle, unit = self._units()
        return {"eta": middle.to(free["eta"]) + unit.to(free["eta"]) * free["eta"]}

    def smooth_log_prob(self, params: Params, x: Tensor) -> Tensor:
        eta = params["eta"]  # (S, K, size)
        total = eta.new_zeros(len(x), *eta.shape[:2])
        for part, own in zip(self.parts, self._split(eta), strict=True):
            y, gone = part.present(x)
            log_prob = part.likelihood.log_prob(part.split(own), y.to(eta)[:, None, None])  # (n, S, K, count)
            log_prob = log_prob if gone is None else torch.where(gone[:, None, None], 0.0, log_prob)
            total = total + (log_prob.squeeze(-1) if part.count == 1 else log_prob.sum(-1))
        return total

    def log_prob_and_pull(self, free: Params, x: Tensor) -> tuple[Tensor, Callable[[Tensor], Params]]:
        """By the scores ∂ log p / ∂η that every likelihood tells."""
        eta, unit = self.from_free(free)["eta"], self._units()[1].to(free["eta"])
        pairs = [part.scores(own, x) for part, own in zip(self.parts, self._split(eta), strict=True)]

        def pull(weight: Tensor) -> Params:
            sums = [(weight.unsqueeze(-1) * score).sum(0) for _, score in pairs]
            return {"eta": torch.cat(sums, -1) * unit}

        return sum((value for value, _ in pairs[1:]), pairs[0][0]), pull

    def _units(self) -> tuple[Tensor, Tensor]:
        """η of all rows together, and the units in which it is measured: both (size,)."""
        if self._middle is None:
            step = max(1, len(self._rows) // SAMPLE)
            rows, weight = self._rows[::step], self._weight[::step]
            pairs = [
                part.likelihood.baseline(own.double(), weight) for part in self.parts for own in part.of(rows).unbind(1)
            ]
            middle, unit = (torch.cat(values) for values in zip(*pairs, strict=True))
            self._middle = middle, unit
        return self._middle

    def sample(self, params: Params, component: Tensor) -> Tensor:
        pieces = [
            part.likelihood.distribution(part.split(own[component])).sample().double().reshape(len(component), -1)
            for part, own in zip(self.parts, self._split(params["eta"]), strict=True)
        ]
        return torch.cat(pieces, 1)

    def expected(self, params: Params, x: Tensor, responsibility: Tensor) -> Tensor:
        pieces = []
        for part, own in zip(self.parts, self._split(params["eta"]), strict=True):
            eta = part.split(own)  # (K, count, numbers of one)
            if part.likelihood.labels:
                probabilities = torch.einsum("nk,kcl->ncl", responsibility, part.likelihood.probabilities(eta).double())
                pieces.append(probabilities.argmax(-1).double())
            else:
                pieces.append(responsibility @ part.likelihood.mean(eta).double().reshape(len(own), -1))
        return torch.cat(pieces, 1)

    # --- sums and estimates -------------------------------------------------------------------------------------
    def zeros(self, starts: int, components: int) -> Params:
        totals = {"rows": torch.zeros(starts, components, dtype=torch.float64)}
        for index, part in enumerate(self.parts):
            width = part.width()
            # Where no statistics of fixed size are sufficient, the weights themselves are kept, once for all parts.
            name, shape = ("weight", (len(self._rows),)) if width is None else (f"part{index}", (part.count, width))
            totals[name] = torch.zeros(starts, components, *shape, dtype=torch.float64)
        return totals

    def accumulate(self, totals: Params, params: Params | None, x: Tensor, weight: Tensor, rows: slice) -> None:
        flat = weight.flatten(1)
        totals["rows"] += weight.sum(0)
        if "weight" in totals:
            totals["weight"][..., rows] += weight.movedim(0, -1)
        for index in range(len(self.parts)):
            if f"part{index}" in totals:
                sums = self._sums(index, x, flat, rows)
                if sums is not None:
                    totals[f"part{index}"] += sums.unflatten(0, weight.shape[1:])

    def maximise(self, params: Params | None, totals: Params) -> Params:
        shape = totals["rows"].shape
        rows = totals["rows"].sum(1)[:, None, None, None]
        previous = [None] * len(self.parts) if params is None else self._split(params["eta"].flatten(0, 1))
        estimates = []
        for index, (part, before) in enumerate(zip(self.parts, previous, strict=True)):
            total = totals.get(f"part{index}")
            if total is None:
                estimates.append(self._by_rows(part, totals["weight"].flatten(0, 1), before))
                continue
            every = total.sum(1, keepdim=True)  # the weights of a row sum to its own: this is the sum over all rows
            mixed = total + self.smoothing * every / rows.clamp_min(1e-300)
            mixed = torch.where(mixed[..., :1] > 0, mixed, every)
            mean = mixed[..., 1:] / mixed[..., :1].clamp_min(1e-300)
            estimates.append(part.likelihood.from_statistics(mean, part.of(self.origin)).flatten(2).flatten(0, 1))
        return {"eta": torch.cat(estimates, -1).unflatten(0, shape)}

    def label_columns(self) -> Tensor:
        labels = torch.zeros(self.parts[-1].columns.stop, dtype=torch.bool)
        for part in self.parts:
            labels[part.columns] = part.likelihood.labels
        return labels

    def ends(self) -> Tensor:
        """The least and the largest number of each column, (2, columns); NaN where there are gaps between them."""
        ends = torch.empty(2, self.width, dtype=torch.float64)
        for part in self.parts:
            ends[:, part.columns] = torch.tensor(ends_of(part.likelihood.support), dtype=torch.float64).unsqueeze(1)
        return ends

    def free(self, components: int) -> int:
        return components * sum(_free(part) for part in self.parts)

    # --- files --------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        parts = [
            {
                "likelihood": part.likelihood.to_json(),
                "columns": [part.columns.start, part.columns.stop],
                "target": part.target.to_json(),
                "names": list(part.names),
            }
            for part in self.parts
        ]
        return {"parts": parts, "smoothing": self.smoothing}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Columns:
        """The inverse of `to_json`."""
        parts: list[Part] = []
        for described in data["parts"]:
            parts.append(Part.from_json(described, parts[-1].columns.stop if parts else 0))
        smoothing = data["smoothing"]
        if not parts or not AMOUNT.holds(smoothing):
            raise ModelFileError(f"The file has {len(parts)} columns with smoothing={smoothing!r}.")
        return Columns(parts, smoothing)

    @property
    def width(self) -> int:
        return self.parts[-1].columns.stop

    def arrays(self) -> Arrays:
        return {"eta": Array(f"K {sum(part.size for part in self.parts)}")}

    def check_params(self, params: Params, components: int, columns: int) -> None:
        super().check_params(params, components, columns)
        for part, eta in zip(self.parts, self._split(params["eta"]), strict=True):
            part.check_eta(eta)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _split(self, eta: Tensor) -> tuple[Tensor, ...]:
        return eta.split([part.size for part in self.parts], -1)

    def _sums(self, index: int, x: Tensor, weight: Tensor, rows: slice) -> Tensor | None:
        """`Part.sums`; small data that come in one block are measured once, and not in every step."""
        part = self.parts[index]
        if rows != slice(0, len(self._rows)) or x.numel() > KEPT:
            return part.sums(x, weight, self.origin)
        if index not in self._measured:
            self._measured[index] = part.measured(x, self.origin)
        measured = self._measured[index]
        return None if measured is None else (weight.T @ measured.flatten(1)).unflatten(-1, measured.shape[1:])

    def _by_rows(self, part: Part, weight: Tensor, previous: Tensor | None) -> Tensor:
        """The estimate from all rows and their weights (k, n); never worse than the parameters before."""
        smoothed = weight + self.smoothing * self._weight / self._weight.sum()
        y, gone = part.present(self._rows)
        estimates = []
        for index, own in enumerate(part.of(self._rows).unbind(1)):
            new = part.likelihood.weighted_mle(own, smoothed.T)
            if previous is not None:
                before = part.split(previous)[:, index]
                counted = smoothed if gone is None else torch.where(gone[:, index], 0.0, smoothed)
                gain = part.likelihood.each_log_prob(new, y[:, index])
                gain -= part.likelihood.each_log_prob(before, y[:, index])
                new = torch.where(torch.einsum("kn,nk->k", counted, gain).unsqueeze(-1) >= 0, new, before)
            estimates.append(new)
        return torch.cat(estimates, -1)


def _pieces(likelihood: Any, names: Sequence[str]) -> list[Likelihood]:
    """The likelihoods in the order of the columns; text such as "poisson" is read."""
    if isinstance(likelihood, Product):
        parts = likelihood.parts
        if not set(parts) & set(names) or any(part.event_dim for part in parts.values()):
            return list(parts.values())  # columns of other names are in the order of the parts
        likelihood = parts
    if isinstance(likelihood, Mapping):
        given = {str(name): piece for name, piece in likelihood.items()}
        without, unknown = [n for n in names if n not in given], [n for n in given if n not in names]
        if without or unknown:
            mismatch = f"none for column {without[0]!r}" if without else f"one for {unknown[0]!r}"
            raise SpecError(f"likelihood has {mismatch}; it needs one for each of the columns {', '.join(names)}.")
        return [as_spec(given[name], Likelihood, "likelihood") for name in names]
    if isinstance(likelihood, Sequence) and not isinstance(likelihood, str):
        return [as_spec(piece, Likelihood, "likelihood") for piece in likelihood]
    one = as_spec(likelihood, Likelihood, "likelihood")
    return [one] if one.event_dim else [one] * len(names)


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbours that say the same, each of its own column, as one part: one operation instead of many."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        same = last is not None and (last.likelihood, last.target) == (part.likelihood, part.target)
        if last is not None and same and not part.likelihood.event_dim:
            columns = slice(last.columns.start, part.columns.stop)
            joined[-1] = replace(last, columns=columns, names=last.names + part.names)
        else:
            joined.append(part)
    return joined


def _bound(part: Part, x: Tensor) -> list[Part]:
    """The part with each of its likelihoods bound to its own column, so that some of the rows mean the same."""
    bound = []
    step = len(part.names) // part.count
    for index, y in enumerate(part.of(x).unbind(1)):
        target = part.likelihood.target(y)
        start = part.columns.start + index * step
        names = part.names[index * step : (index + 1) * step]
        bound.append(Part(part.likelihood.bind(target), slice(start, start + step), target, names))
    return bound


def _least(likelihood: Likelihood) -> int:
    target = likelihood.known_target()
    return target.shape[0] if target is not None and target.shape else 1


def _free(part: Part) -> int:
    """Free parameters of one component: labels have one number too many, since their probabilities sum to 1."""
    return part.size - (part.count if part.target.classes and part.size == part.count * part.target.classes else 0)
