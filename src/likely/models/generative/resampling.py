"""Missing values by importance resampling: for any density that can be drawn from and asked for log p.

    x* ~ q( · | seen),   w ∝ p(x*, seen)/q(x* | seen),   a value is drawn from the candidates by w

q looks at rows of the model's own: those whose seen columns lie near give their other columns, with a little noise. Its
density is known, so the weights are exact and draws come from p(missing | seen) as candidates grow in number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.special import ndtr

from ...core.random import current_generator

__all__ = ["Resampled"]

FLOOR = 1e-3
"""The fraction of candidates that look at no seen column, so that no row is without one."""
MOST = 4096
"""Candidates for all draws of a row, at most."""
SLIP = 1e-3
"""How much less a row counts that has another label in a seen column."""


@dataclass(frozen=True)
class Resampled:
    """`rows` of the model's own stand behind `candidates` or more for each row that has gaps."""

    rows: int = 512
    candidates: int = 256

    @torch.no_grad()
    def complete(
        self, module: Any, x: Tensor, condition: Tensor | None, draws: int, labels: tuple[int, ...] = ()
    ) -> Tensor:
        """Rows x (n, *shape) with each NaN drawn given the rest, (draws, n, *shape); `labels` are columns of codes."""
        flat = x.flatten(1)
        out = flat.new_empty(draws, *flat.shape)
        shared = None if condition is not None else self._drawn(module, None)
        told = flat if condition is None else torch.cat([flat, condition.flatten(1)], 1)
        _, kind = told.nan_to_num(nan=torch.inf).unique(dim=0, return_inverse=True)
        for rows in (kind == number for number in range(int(kind.max()) + 1)):  # alike rows share their candidates
            first, count = int(rows.nonzero()[0]), int(rows.sum())
            own = None if condition is None else condition[first]
            seen = self._drawn(module, own) if shared is None else shared
            filled = self._of_row(module, flat[first], own, seen, draws * count, labels, x.shape[1:])
            out[:, rows] = filled.unflatten(0, (draws, count))
        return out.reshape(draws, *x.shape)

    def _drawn(self, module: Any, condition: Tensor | None) -> Tensor:
        given = None if condition is None else condition.expand(self.rows, *condition.shape)
        return module.sample(self.rows, given).flatten(1)

    def _of_row(
        self,
        module: Any,
        row: Tensor,
        condition: Tensor | None,
        rows: Tensor,
        draws: int,
        labels: tuple[int, ...],
        shape: torch.Size,
    ) -> Tensor:
        """So many fillings of one row, (draws, d)."""
        gaps, scale = row.isnan(), rows.std(0).clamp_min(1e-12)
        several = min(MOST, max(self.candidates, 4 * draws))
        seen, count = ~gaps, int(gaps.sum())
        coded, step = _mask(gaps, labels), torch.zeros_like(row)
        for column, own in getattr(module, "steps", {}).items():
            step[column] = own
        kinds = Kinds(coded, step)
        near = kinds.log_kernel(row, rows, scale * _width(len(rows), len(row) - count), seen, SLIP)
        even = near.new_tensor(math.log(FLOOR / len(rows)))
        log_choice = torch.logaddexp(near.log_softmax(0) + math.log1p(-FLOOR), even)
        generator = current_generator(row.device)
        chosen = torch.multinomial(log_choice.exp(), several, replacement=True, generator=generator)
        width = scale * _width(len(rows), count)
        candidates = row.expand(several, -1)
        source = rows[chosen]
        noise = torch.randn(source.shape, generator=generator, dtype=row.dtype, device=row.device)
        moved = source + noise * width
        rounded = (moved / torch.where(step > 0, step, 1.0)).round() * step
        moved = torch.where(coded, source, torch.where(step > 0, rounded, moved))
        candidates = torch.where(gaps, moved, candidates)
        log_q = torch.logsumexp(kinds.log_kernel(candidates.unsqueeze(1), rows, width, gaps, 0.0) + log_choice, -1)
        given = None if condition is None else condition.expand(several, *condition.shape)
        log_p = module.log_prob(candidates.reshape(-1, *shape), given)
        log_p = log_p[0] if isinstance(log_p, tuple) else log_p
        log_p = log_p if log_p.ndim == 1 else torch.logsumexp(log_p, 0)
        log_weight = (log_p - log_q).nan_to_num(-torch.inf, neginf=-torch.inf)
        weight = (log_weight - log_weight.max()).exp().nan_to_num(1.0)
        return candidates[torch.multinomial(weight, draws, replacement=True, generator=generator)]


@dataclass(frozen=True)
class Kinds:
    """Which columns are labels, and the step of those that are rounded, 0 for others."""

    coded: Tensor
    step: Tensor

    def log_kernel(self, x: Tensor, rows: Tensor, width: Tensor, among: Tensor, slip: float) -> Tensor:
        """log Π k(xⱼ | rowⱼ) over some columns: normal, its mass on a step, or 1 for the same label."""
        whole = self.step > 0
        total = x.new_zeros(torch.broadcast_shapes(x.shape, rows.shape)[:-1])
        for own, kernel in ((~self.coded & ~whole, _normal), (~self.coded & whole, _mass), (self.coded, _same)):
            columns = (own & among).nonzero().ravel()  # the others cost nothing: most rows have few gaps
            if len(columns):
                step = self.step[columns]
                total += kernel(x[..., columns], rows[..., columns], width[columns], step, slip).sum(-1)
        return total


def _normal(x: Tensor, rows: Tensor, width: Tensor, *_: Any) -> Tensor:
    return -0.5 * ((x - rows) / width).square() - (width.log() + 0.5 * math.log(2 * math.pi))


def _mass(x: Tensor, rows: Tensor, width: Tensor, step: Tensor, _: float) -> Tensor:
    off, half = (x - rows) / width, 0.5 * step / width
    return (ndtr(off + half) - ndtr(off - half)).clamp_min(torch.finfo(x.dtype).tiny).log()


def _same(x: Tensor, rows: Tensor, _: Tensor, __: Tensor, slip: float) -> Tensor:
    return torch.where(x == rows, 0.0, math.log(slip) if slip else -torch.inf).to(x.dtype)


def _width(rows: int, columns: int) -> float:
    """Of a kernel, in standard deviations: Scott's rule."""
    return float(rows ** (-1 / (4 + max(1, columns))))


def _mask(like: Tensor, columns: Any) -> Tensor:
    mask = torch.zeros_like(like)
    mask[list(columns)] = True
    return mask
