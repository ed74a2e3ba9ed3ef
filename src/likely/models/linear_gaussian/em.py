"""EM for the linear-Gaussian model x = Wz + μ + ε: z is hidden, missing values are marginalised.

    E-step   z̃ = [z, 1]:   A_j = Σ E[z̃z̃ᵀ],   b_j = Σ x_j E[z̃],   c_j = Σ x_j²      over the rows that know column j
    M-step   [w_j, μ_j] = A_j⁻¹ b_j,   ψ_j = (c_j − b_jᵀA_j⁻¹b_j) / N_j
    and      W ← W R^½,   μ ← μ + Wα,   with α and R the mean and covariance of z over all rows

The last line is parameter expansion (Liu, Rubin and Wu, 1998): z gets a mean and covariance of its own, estimated and
absorbed at once. The likelihood still never falls, and rises much faster.

Rows with one pattern of missing values enter through Σ x̃x̃ᵀ only, x̃ = [x, 1]. So many rows are replaced, once, by d + 1
that have the same sum; a step then costs what the patterns cost, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError
from ...inference.latent.latent import Latent, Params
from .blocks import ROWS, Block, has_missing, patterns
from .density import LinearGaussian

__all__ = ["LinearGaussianEM"]

WORK = 2**21
"""Numbers that the statistics of one block of rows may take."""

MANY = 2
"""A pattern with more than MANY · (d + 1) rows is worth replacing."""


class LinearGaussianEM(Latent):
    """Rows bound to a model of k factors, `isotropic` (Ψ = σ²I) or with one noise variance a column.

    Inside, columns are centred and have variance 1 (all the same scale if isotropic); `restored` undoes it. `floor` is
    the least fraction of a column's variance that is noise.
    """

    def __init__(self, x: Tensor, weight: Tensor | None, factors: int, *, isotropic: bool, floor: float) -> None:
        self.x, self.factors, self.isotropic, self.floor = x, factors, isotropic, floor
        self.complete = not has_missing(x)
        self.root = None if weight is None else weight.sqrt().unsqueeze(-1)
        self._measure()
        self._compress()
        self.work = float(self.x.shape[0] * self.x.shape[1] * (self.factors + 1))

    # --- what EM asks -----------------------------------------------------------------------------------------------
    def start(self, seeds: list[int]) -> Params:
        """The principal directions for the first seed; random loadings that explain half the variance for others."""
        d, k = self.x.shape[1], self.factors
        values, vectors = torch.linalg.eigh(self.correlation())
        kept = values[-k:].flip(0)
        rest = (values.sum() - kept.sum()).clamp_min(0) / max(d - k, 1)
        starts = [vectors[:, -k:].flip(1) * (kept - rest).clamp_min(1e-3 * values.mean()).sqrt()]
        for seed in seeds[1:]:
            random = torch.Generator().manual_seed(seed)
            starts.append(torch.randn(d, k, generator=random, dtype=torch.float64) * (0.5 / k) ** 0.5)
        loadings = torch.stack(starts)
        noise = (1 - loadings.square().sum(-1)).clamp(max(self.floor, 0.1), 1.0)
        noise = noise.mean(-1, keepdim=True).expand_as(noise) if self.isotropic else noise
        return {"loadings": loadings, "mean": torch.zeros(len(seeds), d, dtype=torch.float64), "noise": noise}

    def expect(self, params: Params) -> tuple[Params, Tensor]:
        model = LinearGaussian(params["loadings"], params["mean"], params["noise"])
        starts, d, k = model.loadings.shape
        size = k + 1
        latent = torch.zeros(starts, size, size, dtype=torch.float64)
        columns = torch.zeros(starts, 1 if self.complete else d, size, size, dtype=torch.float64)
        cross = torch.zeros(starts, d, size, dtype=torch.float64)
        twice = torch.zeros(starts, dtype=torch.float64)
        for block, count in self._blocks():
            given = model.infer(block)
            hidden = torch.cat([given.mean, block.ones.expand(starts, -1, 1)], -1)
            moments = _sums(hidden, block)  # (S, b, k + 1, k + 1)
            moments[..., :k, :k] += count[:, None, None] * given.covariance
            latent += moments.sum(1)
            if not self.complete:
                columns += (block.masks.T @ moments.flatten(-2)).unflatten(-1, (size, size))
            cross += block.values.T @ hidden
            twice += given.energy.sum(-1) + given.log_det @ count
        if self.complete:
            columns[:, 0] = latent
        scaling = (self.known_count * self.scale.log()).sum()
        return {"latent": latent, "columns": columns, "cross": cross}, -0.5 * twice - scaling

    def maximise(self, params: Params, statistics: Params) -> Params:
        columns, cross, latent = statistics["columns"], statistics["cross"], statistics["latent"]
        if self.complete:
            solved = torch.linalg.solve(columns[:, 0], cross.mT).mT
        else:
            solved = torch.linalg.solve(columns, cross.unsqueeze(-1)).squeeze(-1)
        rest = self.squares - (solved * cross).sum(-1)
        pooled = (rest.sum(-1, keepdim=True) / self.known.sum()).expand_as(rest)
        noise = pooled if self.isotropic else rest / self.known
        loadings, mean = solved[..., :-1], solved[..., -1]
        moments = latent / self.count
        centre = moments[..., :-1, -1]
        spread = moments[..., :-1, :-1] - centre.unsqueeze(-1) * centre.unsqueeze(-2)
        mean = mean + (loadings @ centre.unsqueeze(-1)).squeeze(-1)
        loadings = loadings @ torch.linalg.cholesky(spread)
        return {"loadings": loadings, "mean": mean, "noise": noise.clamp_min(self.floor)}

    # --- as a density -------------------------------------------------------------------------------------------
    differentiable = True

    @property
    def width(self) -> int:
        return self.x.shape[1] * (self.factors + 1)

    def to_free(self, params: Params) -> Params:
        noise = params["noise"][..., :1] if self.isotropic else params["noise"]
        return {**params, "noise": (noise - self.floor).clamp_min(1e-9).log()}

    def from_free(self, free: Params) -> Params:
        noise = (self.floor + free["noise"].exp()).expand_as(free["mean"])
        return {**free, "noise": noise}

    def rows(self) -> tuple[Tensor, Tensor | None]:
        return self.x, None if self.root is None else self.root[:, 0].square()

    def row_log_prob(self, params: Params, x: Tensor) -> Tensor:
        like = params["mean"]
        masks, owner = patterns(x) if has_missing(x) else (torch.ones(1, x.shape[1]), torch.zeros(len(x)).long())
        values = ((x.to(like) - self.centre.to(like)) / self.scale.to(like)).nan_to_num(nan=0.0)
        block = Block(values, like.new_ones(1, 1), masks.to(like), owner, slice(0, len(x)))
        given = LinearGaussian(params["loadings"], like, params["noise"]).infer(block)
        scaling = (masks.to(like) @ self.scale.to(like).log())[owner]
        return (-0.5 * (given.energy + given.log_det[..., owner]) - scaling).T

    def restored(self, params: Params) -> LinearGaussian:
        """The model in the units of the data."""
        return LinearGaussian(
            params["loadings"] * self.scale.unsqueeze(-1),
            self.centre + params["mean"] * self.scale,
            params["noise"] * self.scale.square(),
        )

    # --- the rows, once -----------------------------------------------------------------------------------------------
    def _measure(self) -> None:
        """Mean, scale and known weight of each column."""
        part = distributed.shard(len(self.x))
        sums = torch.zeros(2, self.x.shape[1], dtype=torch.float64)
        for values, weight in self._raw(part):
            sums += torch.stack([(weight * values).sum(0), weight.sum(0)])
        self.known_count = sums[1].clone()
        distributed.sum_(sums)
        self.known = sums[1]
        if bool((self.known == 0).any()):
            column = int((self.known == 0).nonzero()[0, 0])
            raise DataError(f"X has no value in column {column} (in rows with weight); drop the column.")
        self.centre = sums[0] / self.known
        squares = torch.zeros_like(self.centre)
        for values, weight in self._raw(part):
            squares += (weight * (values - self.centre).square()).sum(0)
        distributed.sum_(squares)
        scale = (squares / self.known).sqrt()
        moves = scale > 1e-12 * self.centre.abs()
        if not bool(moves.any()):
            raise DataError("X has no variance: every row is the same, so there is nothing to explain.")
        if self.isotropic:
            scale = scale.square().mean().sqrt().expand_as(scale)
        self.scale = torch.where(moves | self.isotropic, scale, scale[moves].min())
        self.count = float(len(self.x)) if self.root is None else float(self.root.square().sum())

    def _raw(self, part: slice) -> Iterator[tuple[Tensor, Tensor]]:
        """Values and their weights, both 0 where a value is missing."""
        for start in range(part.start, part.stop, ROWS):
            rows = slice(start, min(start + ROWS, part.stop))
            values = self.x[rows].double()
            known = (~values.isnan()).double()
            yield values.nan_to_num(nan=0.0), known if self.root is None else known * self.root[rows].square()

    def _compress(self) -> None:
        """Patterns of many rows become d + 1 rows with the same Σ x̃x̃ᵀ; rows of rare patterns are looked up again."""
        n, d = self.x.shape
        part = distributed.shard(n)
        if self.complete:
            masks, owner = torch.ones(1, d, dtype=torch.float64), torch.zeros(n, dtype=torch.int64)
        else:
            masks, owner = patterns(self.x)
        kept = torch.arange(part.start, part.stop)
        if self.root is not None:
            kept = kept[self.root[kept, 0] > 0]
        kept = kept[torch.argsort(owner[kept], stable=True)]
        self.masks, self.owner = masks, owner
        sizes = torch.bincount(owner[kept], minlength=len(masks))
        many = sizes > MANY * (d + 1)
        frequent = kept[many[owner[kept]]]
        self.rare = kept[~many[owner[kept]]]
        self.held: list[tuple[Block, Tensor]] = []
        groups = frequent.split(sizes[many].tolist()) if len(frequent) else ()
        made = [self._like(rows) for rows in groups]
        per_block = max(1, self._block_rows() // (d + 1))
        numbers = many.nonzero()[:, 0]
        for first in range(0, len(made), per_block):
            chosen = slice(first, first + per_block)
            rows = torch.cat(made[chosen])
            own = torch.arange(len(made[chosen])).repeat_interleave(d + 1)
            values = rows[:, :d] * masks[numbers[chosen]][own]
            block = Block(values, rows[:, d:], masks[numbers[chosen]], own, slice(0, 0))
            self.held.append((block, _count(block)))
        self.squares = torch.zeros(d, dtype=torch.float64)
        for block, _ in self._blocks():
            self.squares += block.values.square().sum(0)
        distributed.sum_(self.squares)

    def _like(self, rows: Tensor) -> Tensor:
        """d + 1 rows [x, 1] with the Σ x̃x̃ᵀ of these."""
        size = self.x.shape[1] + 1
        total = torch.zeros(size, size, dtype=torch.float64)
        for chosen in rows.split(ROWS):
            augmented = torch.cat(self._scaled(chosen), -1).numpy()
            total += torch.from_numpy(augmented.T @ augmented)  # NumPy makes half of a symmetric product only
        values, vectors = torch.linalg.eigh(total)
        return (vectors * values.clamp_min(0).sqrt()).T

    def _scaled(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Centred and scaled rows, 0 where missing, and ones: both times √w."""
        contiguous = len(rows) == int(rows[-1] - rows[0]) + 1 and self.complete
        chosen = self.x[int(rows[0]) : int(rows[-1]) + 1] if contiguous else self.x[rows]
        values = ((chosen.double() - self.centre) / self.scale).nan_to_num(nan=0.0)
        root = torch.ones(len(rows), 1, dtype=torch.float64) if self.root is None else self.root[rows]
        return values * root, root

    def _blocks(self) -> Iterator[tuple[Block, Tensor]]:
        """This process's rows, or those that stand for them, and the weight of each pattern."""
        yield from self.held
        for rows in self.rare.split(self._block_rows()) if len(self.rare) else ():
            first, last = int(self.owner[rows[0]]), int(self.owner[rows[-1]])
            block = Block(*self._scaled(rows), self.masks[first : last + 1], self.owner[rows] - first, rows)
            yield block, _count(block)

    def _block_rows(self) -> int:
        return max(self.x.shape[1] + 1, WORK // ((self.factors + 1) ** 2 + self.x.shape[1]))

    def correlation(self) -> Tensor:
        """Second moments of the scaled columns, missing values at the mean."""
        d = self.x.shape[1]
        total = torch.zeros(d, d, dtype=torch.float64)
        for block, _ in self._blocks():
            total += block.values.T @ block.values
        distributed.sum_(total)
        return total / self.count


def _count(block: Block) -> Tensor:
    """The weight of the rows of each pattern."""
    return torch.zeros(len(block.masks), dtype=torch.float64).index_add_(0, block.owner, block.ones[:, 0].square())


def _sums(hidden: Tensor, block: Block) -> Tensor:
    """Σ z̃z̃ᵀ over the rows of each pattern: (S, b, k + 1, k + 1)."""
    if len(block.masks) == 1:
        return (hidden.mT @ hidden).unsqueeze(1)
    products = hidden.unsqueeze(-1) * hidden.unsqueeze(-2)
    shape = (len(hidden), len(block.masks), *products.shape[-2:])
    return torch.zeros(shape, dtype=torch.float64).index_add_(1, block.owner, products)
