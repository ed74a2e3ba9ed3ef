"""p(x | η) of whole rows: a likelihood for each column, whose η a network gives row by row.

    log p(x | η) = Σⱼ log p(xⱼ | ηⱼ)  over the columns j that are not missing,      η = offset + unit · out

`out` are the numbers of order 1 that a network gives; numbers that do not depend on it (a learned σ) are parameters
here, one set for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import SpecError
from ...data.coded import Coded
from ...likelihoods import Bernoulli, Categorical, Likelihood, Normal
from ..emissions import Columns, Part
from .features import is_binary, sampled

__all__ = ["Observed", "columns_of"]

NEVER = -1e9
"""The logit of a class that a column does not have."""
Group = tuple[Likelihood, Tensor, Tensor, tuple[int, ...]]
"""A likelihood, where its targets have their η (targets, numbers), their columns, and the parts with constants."""


def columns_of(
    likelihood: Any,
    x: Tensor,
    coded: Sequence[Coded] = (),
    names: Sequence[str] | None = None,
    number: Callable[[Tensor], Likelihood] = lambda _: Normal(),
) -> Columns:
    """The likelihood of each column. "auto", or one for all: text has Categorical, booleans Bernoulli.

    `number` gives what "auto" means for a column of numbers.

    >>> x = torch.tensor([[1.5, 0.0], [2.5, 1.0]])
    >>> [part.likelihood for part in columns_of("auto", x).parts]
    [Normal(), Bernoulli()]
    """
    flat = x.flatten(1)
    auto = isinstance(likelihood, str) and likelihood == "auto"
    given = Normal() if auto else likelihood
    if auto or (coded and isinstance(given, Likelihood) and not given.event_dim and not given.labels):
        own: list[Likelihood] = []
        for index in range(flat.shape[1]):
            kind = coded[index].kind if coded else "number"
            if kind == "category":
                own.append(Categorical(max(2, len(coded[index].levels))))
            elif kind == "boolean" or (auto and is_binary(flat[:, index])):
                own.append(Bernoulli())
            else:
                own.append(number(flat[:, index]) if auto else given)
        given = own[0] if len(set(own)) == 1 else own
    return Columns.of(given, flat, names)


class Observed(nn.Module):
    """log p(x | η), draws and means of rows; `size` numbers per row come from a network, the rest is learned here."""

    offset: Tensor
    unit: Tensor

    def __init__(self, columns: Columns, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.parts, self.shape = columns.parts, shape
        shared = [part.likelihood.shared(part.target) for part in self.parts]
        if any(n and part.likelihood.event_dim for n, part in zip(shared, self.parts, strict=True)):
            raise SpecError("A vector likelihood with learned constants has no place in a generative model.")
        self.own = [part.size // part.count - n for part, n in zip(self.parts, shared, strict=True)]
        """Numbers of one target that a network gives, part by part."""
        self.sizes = [part.count * n for part, n in zip(self.parts, self.own, strict=True)]
        self.size = sum(self.sizes)
        self.register_buffer("offset", torch.zeros(self.size))
        self.register_buffer("unit", torch.ones(self.size))
        self.scaled = True
        """Whether a unit may differ from 1."""
        self.shared = nn.ParameterList(
            nn.Parameter(torch.zeros(part.count, n)) if n else nn.Parameter(torch.zeros(0), requires_grad=False)
            for part, n in zip(self.parts, shared, strict=True)
        )

        self.groups = _groups(self.parts, self.own, self.sizes) if len(self.parts) > 1 else []

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        """Offset, unit and constants: those of the columns without a network."""
        step = sampled(x)
        rows = x.flatten(1)[::step].double()
        weights = torch.ones(len(rows), dtype=torch.float64) if weight is None else weight[::step].double()
        offsets, units = [], []
        for part, own, shared in zip(self.parts, self.own, self.shared, strict=True):
            offset, unit = _baseline(part, rows, weights)  # (count, numbers of one)
            offsets.append(offset[:, :own].reshape(-1))
            units.append(unit[:, :own].reshape(-1))
            if shared.numel():
                shared.copy_(offset[:, own:])
        self.offset.copy_(torch.cat(offsets))
        self.unit.copy_(torch.cat(units))
        self.scaled = bool((self.unit != 1).any())

    def eta(self, out: Tensor) -> list[Tensor]:
        """η of each part, (…, count, numbers of one)."""
        scaled = torch.addcmul(self.offset, self.unit, out) if self.scaled else self.offset + out
        pairs = zip(self.parts, scaled.split(self.sizes, -1), self.shared, strict=True)
        return [_with_shared(own.unflatten(-1, (part.count, -1)), shared) for part, own, shared in pairs]

    def target_eta(self, part: int, index: int, out: Tensor) -> Tensor:
        """η (n, numbers of one) of one target of a part, from the numbers (n, own) that a network gave for it."""
        first = sum(self.sizes[:part]) + index * self.own[part]
        own = slice(first, first + self.own[part])
        eta = self.offset[own] + self.unit[own] * out
        return _with_shared(eta, self.shared[part][index]) if self.shared[part].numel() else eta

    def log_prob(self, out: Tensor, x: Tensor, *, whole: bool = False) -> Tensor:
        """log p of rows x (…, n, *shape) given what the network gave for them (…, n, size); leading axes broadcast.

        Training says `whole` where no value is missing: then this is not looked up, and log p is quick.
        """
        if whole and self.groups:
            return self._grouped_log_prob(out, x)
        return sum(values.sum(-1) for values in self.each_log_prob(out, x, whole=whole))  # type: ignore[return-value]

    def _grouped_log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        """The same, columns with one likelihood taken together wherever they stand: few large operations."""
        flat = x.flatten(x.ndim - len(self.shape))
        eta = torch.cat([torch.addcmul(self.offset, self.unit, out), out.new_full((*out.shape[:-1], 1), NEVER)], -1)
        total: Any = 0.0
        for likelihood, numbers, columns, shared in self.groups:
            own = eta[..., numbers]
            if shared:
                own = _with_shared(own, torch.cat([self.shared[index] for index in shared]))
            total = total + likelihood.quick_log_prob(own, flat[..., columns]).sum(-1)
        return total

    def each_log_prob(self, out: Tensor, x: Tensor, *, whole: bool = False) -> list[Tensor]:
        """The same for each target of each part: (…, n, count); 0 where a value is missing."""
        flat = x.flatten(x.ndim - len(self.shape))
        gaps = not whole and bool(flat.isnan().any())
        answers = []
        for part, eta in zip(self.parts, self.eta(out), strict=True):
            y = part.of(flat)
            if not gaps:
                log_prob = part.likelihood.quick_log_prob if whole else part.likelihood.log_prob
                answers.append(log_prob(eta, y))
                continue
            gone = part.likelihood.missing(y)
            wide = gone.unsqueeze(-1) if part.likelihood.event_dim else gone
            value = part.likelihood.log_prob(eta, torch.where(wide, part.likelihood.placeholder(y), y))
            answers.append(torch.where(gone, 0.0, value))
        return answers

    def sample(self, out: Tensor) -> Tensor:
        """Draws of rows, (…, *shape); inside `core.random.isolated`."""
        pieces = [self._flat(part, part.likelihood.distribution(eta).sample()) for part, eta in self._pairs(out)]
        return torch.cat(pieces, -1).unflatten(-1, self.shape)

    def mean(self, out: Tensor) -> Tensor:
        """The mean of each column, or the most probable label: (…, *shape)."""
        pieces = [self._flat(part, _middle(part.likelihood, eta)) for part, eta in self._pairs(out)]
        return torch.cat(pieces, -1).unflatten(-1, self.shape)

    def _pairs(self, out: Tensor) -> list[tuple[Part, Tensor]]:
        return list(zip(self.parts, self.eta(out), strict=True))

    @staticmethod
    def _flat(part: Part, y: Tensor) -> Tensor:
        y = y.to(torch.get_default_dtype()) if not y.is_floating_point() else y
        return y.flatten(-2) if part.likelihood.event_dim else y


def _baseline(part: Part, rows: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """η of each column without a network, and its units; a label that no row has counts as half of one row of its own.

    Otherwise a pixel that is never on among these rows would be impossible, and cost without bound where it is on.
    """
    likelihood, y = part.likelihood, part.of(rows)
    if likelihood.labels:
        classes = part.target.classes or 2
        labels = torch.arange(classes, dtype=y.dtype).view(-1, *(1,) * (y.ndim - 1)).expand(-1, *y.shape[1:])
        seen = y[weights > 0]
        whole = torch.stack([(seen == label).any(0) for label in range(classes)]).all(0)  # columns with every label
        labels = torch.where(whole, torch.nan, labels)
        extra = weights.sum().clamp_max(1.0) / classes  # one row, so that weights are repetitions
        y, weights = torch.cat([y, labels]), torch.cat([weights, extra.expand(classes)])
        statistics = likelihood.statistics(y.nan_to_num(), torch.zeros((), dtype=y.dtype))
        if statistics is not None:  # all columns at once: images have many
            present = weights.unsqueeze(-1) * ~y.isnan()  # (n, count)
            mean = torch.einsum("nc,ncm->cm", present, statistics) / present.sum(0).unsqueeze(-1)
            offset = likelihood.from_statistics(mean, torch.zeros((), dtype=y.dtype))
            return offset, torch.ones_like(offset)
    pairs = [likelihood.baseline(own, weights) for own in y.unbind(1)]
    offset, unit = (torch.stack(values) for values in zip(*pairs, strict=True))
    return offset, unit


def _groups(parts: Sequence[Part], own: Sequence[int], sizes: Sequence[int]) -> list[Group]:
    """Columns with the same likelihood; all labels together, with classes that never occur where one has fewer.

    None if a part is a vector, which is taken by itself.
    """
    if any(part.likelihood.event_dim for part in parts):
        return []
    most = max((part.target.classes or 0 for part in parts if isinstance(part.likelihood, Categorical)), default=0)
    groups: dict[Likelihood, tuple[list[list[int]], list[int], list[int]]] = {}
    first = 0
    for index, part in enumerate(parts):
        labels = isinstance(part.likelihood, Categorical)
        key = Categorical(most) if labels else part.likelihood
        numbers, columns, shared = groups.setdefault(key, ([], [], []))
        for target in range(part.count):
            start = first + target * own[index]
            pad = [sum(sizes)] * (most - own[index] if labels else 0)
            numbers.append([*range(start, start + own[index]), *pad])
            columns.append(part.columns.start + target)
        if part.likelihood.shared(part.target):
            shared.append(index)
        first += sizes[index]
    joined: list[Group] = []
    for likelihood, (etas, places, constants) in groups.items():
        where = [torch.tensor(part, device="cpu") for part in (etas, places)]  # real numbers, also while a file is read
        joined.append((likelihood, where[0], where[1], tuple(constants)))
    return joined


def _with_shared(eta: Tensor, shared: Tensor) -> Tensor:
    return torch.cat([eta, shared.expand(*eta.shape[:-1], -1)], -1) if shared.numel() else eta


def _middle(likelihood: Likelihood, eta: Tensor) -> Tensor:
    return likelihood.probabilities(eta).argmax(-1).to(eta) if likelihood.labels else likelihood.mean(eta)
