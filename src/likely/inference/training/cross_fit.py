"""Cross-fitting: members that learn from all rows but their own fold, and stop where the folds are predicted best.

    member k:  θₖ(t), trained on the rows outside fold k for t steps
    t̂, ŝ = argmin  −Σₖ Σ_{i in fold k} wᵢ log p(yᵢ | [η(xᵢ; θ̄ₖ(t)), s])
    p(y | x) = 1/K Σₖ p(y | [η(x; θ̄ₖ(t̂)), ŝ])

All members are one stacked program. Every row is held out by one member and learned from by the others, so that no data
are lost to the stopping rule, and the average over members makes up for what early stopping leaves to chance. θ̄ is a
running average of θ over the last steps, which needs no schedule that knows where the way ends. The constants s that do
not depend on x (the σ of Normal) are those of held-out rows: a network that follows its training rows thinks too well
of itself.

On a table, affine maps are cross-fitted too, on the same folds, and join the mixture (see `training.stacking`): no
network is needed to say what a linear model can say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ...core import distributed
from ...core.random import spread
from ...optim import Adam, Optimizer
from ..dataset import Batch, Dataset
from ..objective import Conditional
from ..posterior import Posterior
from ..predictor import Predictor
from ..problem import Inference, Problem
from .averaging import EMA
from .batches import Batches
from .descent import Descent
from .engine import train
from .map import MAP
from .program import stackable
from .stacking import best_share, least_squares, straight, together

__all__ = ["_CrossFit"]

MEMORY = 0.99
"""The decay of the running average: about the last hundred steps."""
REPORTS, APART, PASSES = 100, 10, 4
"""How often the held-out rows are looked at, at most; how many steps lie between two looks, at least, and how many
times as many rows are learned from in them.

A look at a row costs about half of what learning from it does, so that an eighth of the time is spent on looks at most.
"""
FACTOR = 1.6
"""Training ends once the way is so many times that to the best."""
AFFINE = MAP(steps=150, batch_size=512, average=EMA(0.9))
"""How affine maps are trained: they find in fewer and larger steps all that they will."""
AFFINE_RATE, COLUMNS, BRIEF = 0.05, 16, 40
"""Their rate, the columns from which on it is smaller, and their least steps."""
BLOCK = 1_024
"""Held-out rows to ask about at once."""
ITERATIONS = 4
"""Steps of the search for constants at each look, which goes on from the last one."""
SEARCHES = 5
"""How often constants are searched for where nothing else is."""
FLAT = 1e-4
"""The gradient per row below which constants are left where they are: a score is wrong by half its square."""
TINY = 1e-12
"""No weight is below it."""


class _CrossFit(Inference):
    """`members` networks, each stopped by a fold that the others learn from; with one, by `held` rows that none does.

    A network that cannot be stacked is trained once, as with one member. With `affine` rows are those of a table, and
    the affine map that suits them has a weight in the mixture too, unless the network gives each position's numbers
    apart.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"losses"})
    descends: ClassVar[bool] = True

    members: int = 5
    optimizer: Optimizer = Adam()
    batch_size: int = 128
    steps: int = 1_000
    held: int = 100
    wait: int = 250
    """The least steps of training."""
    affine: bool = False

    def fit(self, problem: Problem) -> Posterior:
        """The members as they were when their folds were predicted best."""
        seeds = spread(problem.seed, self.members)
        alone = self.members == 1 or not stackable(problem.with_(seed=seeds[0]))
        seeds = [problem.seed] if alone else seeds
        average = None if problem.description.settles else EMA(MEMORY)
        spec = MAP(self.optimizer, steps=self.steps, batch_size=self.batch_size, average=average)
        networks = train(lambda own: _Folds(problem, spec, own, self.held, self.wait), problem, seeds, spec)
        module = networks.program.module
        if not self.affine or not isinstance(module, Predictor) or len(module.positions) < len(problem.data.positions):
            return networks.posterior()
        columns = problem.data.x.shape[1]
        spec = AFFINE.replace(optimizer=Adam(AFFINE_RATE * min(1.0, (COLUMNS / columns) ** 0.5)))
        flat = straight(problem)
        maps: _Folds = train(lambda own: _Folds(flat, spec, own, self.held, BRIEF), flat, seeds, spec)
        if getattr(problem.objective, "least_squares", False) and maps.every_output_has_targets():
            maps = min(maps, _Solved(flat, spec, seeds, self.held, BRIEF), key=lambda run: run.lowest)
        share = best_share(networks.held_out_log_prob(), maps.held_out_log_prob(), networks.held_out_weight())
        return together(networks.posterior(), maps.posterior(), share)


class _Folds(Descent):
    """Descent of all members, each on the rows outside its fold."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int], held: int, wait: int) -> None:
        super().__init__(problem, spec, seeds)
        data = problem.data
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(spread(seeds[0], 3)[2]))
        folds = order[: len(seeds) * held].view(len(seeds), held)
        others = torch.ones(len(seeds), len(data), dtype=torch.bool).scatter_(1, folds, value=False)
        rows = others.nonzero()[:, 1].view(len(seeds), -1)
        orders = [spread(seed, 1)[0] for seed in seeds]
        if len(seeds) == 1:
            own = rows[0].to(data.x.device)
            self.rows, self.batches = self.rows.subset(own), Batches(data.subset(own), spec.batch_size, orders)
        else:
            self.batches = _Outside(data, spec.batch_size, orders, rows)
        self.every = max(APART, math.ceil(self.length / REPORTS), math.ceil(PASSES * held / self.batches.size))
        self.total_weight *= rows.shape[1] / len(data)
        self.inside, stacked = rows, folds if len(seeds) > 1 else folds[0]
        self.held_out = [data.batch(part) for part in stacked.to(data.x.device).split(BLOCK, -1)]
        self.held_weight = max(data.subset(folds.flatten().to(data.x.device)).total_weight(), TINY)
        shared, objective = self.program.parameters.get("shared"), problem.objective
        self.constants: _Constants | None = None
        if shared is not None and isinstance(objective, Conditional):
            start = shared.detach()[0] if self.program.stacked else shared.detach()
            self.constants = _Constants(objective, start, self.held_weight)
        self.wait = wait
        self.lowest, self.at, self.chosen = math.inf, 0, self._kept()

    def report(self, at: int) -> dict[str, float]:
        numbers = {"loss": self.epoch_loss * self._over(at), "lr": self.rate}
        self.epoch_loss = 0.0
        with self._averaged():
            score = self._look(at)
        self.finished = self.finished or at >= max(self.wait, FACTOR * self.at)
        return self._record(numbers | {"validation": score})

    def _look(self, at: int) -> float:
        """The score now; the members are kept if it is the best so far."""
        score = self._score()
        if score < self.lowest:
            self.lowest, self.at, self.chosen = score, at, self._kept()
        return score

    def _kept(self) -> list[Tensor]:
        """The members as they are, with the constants that suit their held-out rows."""
        tensors = [value.detach().clone() for value in self._tensors()]
        if self.constants is not None:
            tensors[list(self.program.parameters).index("shared")].copy_(self.constants.values)
        return tensors

    @torch.no_grad()
    def _score(self) -> float:
        """Mean −log p of the held-out rows, under the constants that suit them best; these are kept."""
        self.program.module.eval()
        outputs = [self.program.output(self.problem.objective.inputs(batch)) for batch in self.held_out]
        self.program.module.train()
        if self.constants is not None:
            self.constants.follow(outputs, self.held_out)
            outputs = [self.constants.within(output) for output in outputs]
        parts = zip(outputs, self.held_out, strict=True)
        total = sum(float(self.problem.objective.log_likelihood(output, batch)) for output, batch in parts)
        score = torch.tensor(-total / self.held_weight, dtype=torch.float64)
        distributed.broadcast_(score)  # every process must stop at the same step
        return float(score)

    @torch.no_grad()
    def held_out_log_prob(self) -> Tensor:
        """log p of all held-out rows, by the member as chosen that did not learn from them."""
        for value, kept in zip(self._tensors(), self.chosen, strict=True):
            value.copy_(kept)
        self.program.module.eval()
        objective = self.problem.objective
        parts = [objective.log_prob(self.program.output(objective.inputs(batch)), batch) for batch in self.held_out]
        return torch.cat([part.flatten() for part in parts])

    def held_out_weight(self) -> Tensor | None:
        """The weights of these, None if all are 1."""
        weights = [batch.weight.flatten() for batch in self.held_out if batch.weight is not None]
        return torch.cat(weights) if weights else None

    def every_output_has_targets(self) -> bool:
        """Whether each member learns from targets at every position."""
        weight = self.problem.data.weight
        if not isinstance(weight, Tensor):  # all are 1
            return True
        return bool(weight.reshape(len(weight), -1)[self.inside.to(weight.device)].sum(1).all())

    def posterior(self, chosen: list[Tensor] | None = None) -> Posterior:
        """The members as their folds liked them best."""
        return super().posterior(chosen or self.chosen)


class _Solved(_Folds):
    """Affine maps that need no steps: each is the least squares of the rows outside its fold."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int], held: int, wait: int) -> None:
        super().__init__(problem, spec, seeds, held, wait)
        for part, values in zip(("weight", "bias"), least_squares(problem, self.inside), strict=True):
            own = self.program.parameters[f"network.{part}"].detach()
            own.copy_(values.view_as(own))
        for _ in range(SEARCHES):  # for constants, which may be far from where they start
            self._look(0)


class _Constants:
    """The numbers of η that do not depend on x, as held-out rows have them."""

    def __init__(self, objective: Conditional, start: Tensor, weight: float) -> None:
        self.objective, self.weight = objective, weight
        self.values = start.double().clone()

    def within(self, output: Tensor) -> Tensor:
        """η with these in place of the module's own."""
        size, values = self.values.shape[-1], self.values
        own = output[..., :-size].to(values.dtype)
        return torch.cat([own, values.expand(*own.shape[:-1], size)], -1)

    def follow(self, outputs: Sequence[Tensor], rows: Sequence[Batch]) -> None:
        """Go some way to the maximum of the log-likelihood, from where they are; it moves little between two looks."""
        before = self.values

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            self.values = torch.from_numpy(values.copy()).to(before).view_as(before)
            total, gradient = 0.0, torch.zeros_like(before)
            for output, batch in zip(outputs, rows, strict=True):
                value, score = self.objective.value_and_grad(self.within(output), batch.y.to(before.dtype))
                score = score[..., -before.shape[-1] :]
                if batch.weight is not None:
                    value, score = value * batch.weight, score * batch.weight.unsqueeze(-1)
                total, gradient = total + float(value.sum()), gradient + score.sum_to_size(before.shape)
            return -total / self.weight, (gradient / -self.weight).flatten().cpu().numpy()

        limits = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "gtol": FLAT}
        start = before.flatten().cpu().numpy()
        with np.errstate(all="ignore"):  # far from the optimum a density may be 0
            best = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits).x
        self.values = torch.from_numpy(best).to(before).view_as(before) if np.isfinite(best).all() else before


class _Outside(Batches):
    """Batches of stacked members, each from its own `inside` rows (members, r)."""

    def __init__(self, data: Dataset, size: int | None, seeds: list[int], inside: Tensor) -> None:
        super().__init__(data, min(size or inside.shape[1], inside.shape[1]), seeds)
        self.inside, self.rows = inside, inside.shape[1]
        self.count = math.ceil(self.rows / self.size)

    def _order(self) -> Tensor:
        if self._orders is None or self._at == self.count:
            own = zip(self.inside, self._generators, strict=True)
            self._orders, self._at = self._stacked([rows[torch.randperm(len(rows), generator=g)] for rows, g in own]), 0
        return self._orders
