"""p(x) as a chain of columns, all of whose conditionals one masked network gives in a single pass.

log p(x) = Σⱼ log p(xⱼ | x_<j),      several orders o of the columns:  p(x) = 1/K Σₒ Πⱼ pₒ(xⱼ | what o has before j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ...core.random import current_generator
from ...likelihoods import NormalMixture
from ...networks.layers.masked import random_orders
from ...networks.layers.walk import Walk
from ...networks.masked import masked_network
from ..emissions import Columns, Part
from .features import Features
from .module import DensityModule
from .observed import Observed
from .rounding import on_grid

__all__ = ["Link", "MaskedDensity", "links_of"]

CANDIDATES = 64
"""Fillings of a row that are weighed against each other, at least, where what is observed comes after a gap."""
WEIGHED = 128
"""Fillings of a row whose weighted mean is its expectation."""
BLOCK = 1 << 22
"""Numbers of a layer that a block of candidates may have."""


@dataclass(frozen=True)
class Link:
    """One link of the chain: the target `index` of the likelihood of part `part`, a column or a vector of them."""

    part: Part
    number: int
    index: int
    columns: slice


def links_of(columns: Columns) -> list[Link]:
    """The links in the order of the columns."""
    links = []
    for number, part in enumerate(columns.parts):
        wide = (part.columns.stop - part.columns.start) // part.count
        for index in range(part.count):
            start = part.columns.start + index * wide
            links.append(Link(part, number, index, slice(start, start + wide)))
    return links


class MaskedDensity(DensityModule):
    """The chain for rows with these columns; `inside` holds draws of numbers within the range of the training rows."""

    low: Tensor
    high: Tensor

    def __init__(
        self,
        columns: Columns,
        shape: tuple[int, ...],
        network: Any,
        orders: int = 1,
        condition: tuple[int, ...] | None = None,
        *,
        missing: bool = False,
        inside: bool = False,
    ) -> None:
        super().__init__()
        self.shape, self.missing, self.inside = shape, missing, inside
        self.observed, self.features = Observed(columns, shape), Features(columns, shape, missing)
        self.links = links_of(columns)
        owner = [place for place, link in enumerate(self.links) for _ in range(link.columns.stop - link.columns.start)]
        inputs = [owner[column] for column in self.features.owners]
        outputs = [place for place, link in enumerate(self.links) for _ in range(self.observed.own[link.number])]
        given = 0 if condition is None else math.prod(condition)
        self.network = masked_network(network, inputs, outputs, random_orders(orders, len(self.links)), given)
        nn.init.zeros_(self.network.last.weight)  # training starts from the columns by themselves
        sizes = [
            (p.target.classes or 2) if p.likelihood.labels else 1 for p in columns.parts for _ in _indices(p.columns)
        ]
        ends = [0, *accumulate(sizes)]
        self.slots = [slice(first, stop) for first, stop in pairwise(ends)]
        """Where `expected` has each column: one number, or the probability of each label."""
        self.register_buffer("low", torch.zeros(columns.width))
        self.register_buffer("high", torch.zeros(columns.width))

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.observed.adapt(x, weight)
        self.features.adapt(x, weight)
        flat = x.flatten(1)
        lowest, highest = flat.nan_to_num(torch.inf).amin(0), flat.nan_to_num(-torch.inf).amax(0)
        self.low.copy_(lowest)
        self.high.copy_(highest)
        inside = self.low.new_tensor(math.inf)  # rounded to the dtype of the module, they may have come to lie outside
        self.low.copy_(torch.where(self.low.double() < lowest, self.low.nextafter(inside), self.low))
        self.high.copy_(torch.where(self.high.double() > highest, self.high.nextafter(-inside), self.high))

    # --- log p --------------------------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """log p(x). In gradient training of several orders, that of one order drawn for the batch: a bound, on average.

        A missing value has no term of its own, and later columns see that it is missing.
        """
        features = self.features(x).flatten(1)
        given = None if condition is None else condition.flatten(1)
        orders = len(self.network.orders)
        if orders == 1:
            return self._of_order(x, features, given, 0)
        if self.training:
            return self._of_order(x, features, given, int(torch.randint(orders, (), generator=current_generator())))
        log_probs = torch.stack([self._of_order(x, features, given, order) for order in range(orders)])
        return torch.logsumexp(log_probs, 0) - math.log(orders)

    def _of_order(self, x: Tensor, features: Tensor, condition: Tensor | None, order: int) -> Tensor:
        out = self.network(features, condition, order)
        if self.training or self.missing:
            return self.observed.log_prob(out, x, whole=not self.missing)
        flat, pairs = x.flatten(1), zip(self.observed.parts, self.observed.eta(out), strict=True)
        total: Any = sum(part.likelihood.log_prob(eta, part.of(flat)).sum(-1) for part, eta in pairs)
        return total  # to every digit, and without a look for gaps, which several members at once would not allow

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Tensor:
        """Exact; for gaps in rows of a model whose training rows had none, log-weights (draws, n) of p(observed)."""
        if self.missing or not bool(x.isnan().any()):
            return self.forward(x, condition)
        filled = [self.fill(x, condition, order, CANDIDATES) for order in range(len(self.network.orders))]
        return torch.cat([log_weight for _, log_weight in filled])

    # --- draws --------------------------------------------------------------------------------------------------
    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        weight = self.network.last.weight
        blank = weight.new_full((count, *self.shape), math.nan)
        owner = torch.randint(len(self.network.orders), (count,), generator=current_generator())
        out = torch.empty_like(blank)
        for order in owner.unique().tolist():
            rows = (owner == order).nonzero().ravel().to(weight.device)
            own = None if condition is None else condition[rows]
            out[rows] = self.fill(blank[rows], own, order, 1)[0][0]
        return self.recorded(out)

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """Gaps filled in the order that has most of what is observed first.

        What is observed after a gap weighs the candidates, of which `draws` are drawn anew: exact where nothing is.
        """
        flat = x.flatten(1)
        out = x.expand(draws, *x.shape).clone()
        order, exact = self.best_orders(flat)
        for index in order.unique().tolist():
            for alone in (True, False):
                rows = ((order == index) & (exact == alone)).nonzero().ravel()
                candidates = draws if alone else max(CANDIDATES, 2 * draws)
                step = max(1, BLOCK // (candidates * self._width()))
                for some in rows.split(step) if len(rows) else ():
                    given = None if condition is None else condition[some]
                    filled, log_weight = self.fill(x[some], given, index, candidates)
                    if not alone:
                        chosen = torch.distributions.Categorical(logits=log_weight.mT).sample((draws,))
                        filled = filled[chosen, torch.arange(len(some), device=x.device)]
                    out[:, some] = filled
        return self.recorded(out)

    def expected(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """E[x | what is observed] of each number, and the probability of each label: (n, slots); for gaps alone.

        A gap with nothing observed after it counts by its conditional mean, not by draws: exact if it is the only one.
        """
        flat = x.flatten(1)
        out = x.new_zeros(len(x), self.slots[-1].stop)
        order, exact = self.best_orders(flat)
        alone = exact & (self._gone(flat).sum(1) == 1)
        for index in order.unique().tolist():
            for single in (True, False):
                rows = ((order == index) & (alone == single)).nonzero().ravel()
                candidates = 1 if single else WEIGHED
                for some in rows.split(max(1, BLOCK // (candidates * self._width()))) if len(rows) else ():
                    given = None if condition is None else condition[some]
                    means = x.new_zeros(candidates * len(some), self.slots[-1].stop)
                    _, log_weight = self.fill(x[some], given, index, candidates, means)
                    share = log_weight.softmax(0).unsqueeze(-1)
                    out[some] = (share * means.view(candidates, len(some), -1)).sum(0)
        return out

    def recorded(self, x: Tensor) -> Tensor:
        """Rows in float64, with rounded numbers as they are written: 50.3 and not what float32 makes of it."""
        x = x.double()
        flat = x.flatten(x.ndim - len(self.shape))
        for link in self.links:
            step = link.part.likelihood.step if isinstance(link.part.likelihood, NormalMixture) else None
            if step is not None:
                flat[..., link.columns] = on_grid(flat[..., link.columns], step)
        return flat.unflatten(-1, self.shape)

    def _width(self) -> int:
        return max(self.network.last.in_features, self.network.last.out_features)

    def _gone(self, flat: Tensor) -> Tensor:
        return torch.stack([flat[:, link.columns].isnan().any(1) for link in self.links], 1)

    def best_orders(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """For each row the order in which the fewest gaps have something observed after them, and whether none has."""
        gone = self._gone(flat)
        counts = []
        for order in self.network.orders:
            own = gone[:, list(order)]
            later = (~own).flip(1).cumsum(1).flip(1) > 0  # something observed here or later
            counts.append((own & later).sum(1))
        fewest = torch.stack(counts).min(0)
        return fewest.indices, fewest.values == 0

    def fill(
        self, x: Tensor, condition: Tensor | None, order: int, candidates: int, means: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Candidates (candidates, n, *shape) with gaps drawn in an order, and log p of what is observed given them.

        Into `means` (candidates · n, slots) it writes what `expected` takes the mean of.
        """
        count = len(x)
        rows = x.flatten(1).repeat(candidates, 1)
        later = None if means is None else self._observed_after(x.flatten(1), order).repeat(candidates, 1)
        given = None if condition is None else condition.flatten(1).repeat(candidates, 1)
        walk = Walk(self.network, len(rows), given, order)
        log_weight = rows.new_zeros(len(rows))
        for place in walk.columns:
            link = self.links[place]
            eta = self.observed.target_eta(link.number, link.index, walk.next())
            gone = rows[:, link.columns].isnan().any(1)
            if bool(gone.any()):
                new = self._drawn(link, eta)
                rows[:, link.columns] = torch.where(gone[:, None], new, rows[:, link.columns])
                if means is not None and later is not None:
                    drawn, mean = self._in_slots(link, new, eta)
                    means[:, self._slots_of(link)] = torch.where(later[:, place, None], drawn, mean)
            if not bool(gone.all()):
                y = rows[:, link.columns] if link.part.likelihood.event_dim else rows[:, link.columns.start]
                log_weight += torch.where(gone, 0.0, link.part.likelihood.log_prob(eta, y))
            walk.tell(torch.cat([self.features.column(c, rows[:, c]) for c in _indices(link.columns)], 1))
        return rows.view(candidates, count, *self.shape), log_weight.view(candidates, count)

    def _observed_after(self, flat: Tensor, order: int) -> Tensor:
        """For each link, whether something after it in an order is observed: (n, links)."""
        sequence = list(self.network.orders[order])
        known = ~self._gone(flat)[:, sequence]
        after = torch.zeros_like(known)
        after[:, :-1] = known[:, 1:].flip(1).cumsum(1).flip(1) > 0
        return after[:, torch.argsort(torch.tensor(sequence))]

    def _slots_of(self, link: Link) -> slice:
        return slice(self.slots[link.columns.start].start, self.slots[link.columns.stop - 1].stop)

    def _in_slots(self, link: Link, new: Tensor, eta: Tensor) -> tuple[Tensor, Tensor]:
        """A draw, and the mean in its place: of labels as probabilities."""
        likelihood = link.part.likelihood
        if likelihood.labels:
            probabilities = likelihood.probabilities(eta)
            return one_hot(new[:, 0].long(), probabilities.shape[-1]).to(eta), probabilities
        return new, likelihood.mean(eta).reshape(len(eta), -1)

    def _drawn(self, link: Link, eta: Tensor) -> Tensor:
        new = link.part.likelihood.distribution(eta).sample().to(eta).reshape(len(eta), -1)
        if self.inside and isinstance(link.part.likelihood, NormalMixture):
            new = new.clamp(self.low[link.columns], self.high[link.columns])
        return new


def _indices(columns: slice) -> range:
    return range(columns.start, columns.stop)
