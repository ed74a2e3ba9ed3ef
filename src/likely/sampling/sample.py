"""Markov chain Monte Carlo for any log-density: start, warm up, draw, and say whether the chains agree."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import ConvergenceWarning, DataError
from ..core.progress import progress
from ..core.spec import as_spec
from .chains import Chains, as_names
from .density import LogDensity, as_generator, as_log_density, as_real, draw, shown, whole
from .metropolis_hastings import MetropolisHastings
from .sampler import Sampler

__all__ = ["sample"]

_AGREE = 1.05


def sample(
    log_prob: LogDensity | Distribution,
    initial: ArrayLike | Tensor | Distribution,
    method: Sampler | str = MetropolisHastings(),  # noqa: B008 (a frozen value)
    draws: int = 1000,
    warmup: int = 500,
    chains: int | None = None,
    seed: Any = None,
    verbose: bool = False,
    names: str | Sequence[str] | None = None,
) -> Chains:
    """Draws from exp(log_prob), which need not be normalised, by several chains side by side.

    `log_prob` takes positions (chains, *event), one row a chain, and gives (chains,); a torch distribution will do.
    `initial` is one point (a number or a vector) from which all chains start, a row for each chain (two axes or
    more), or a distribution to draw the starts from: starts apart from one another make R-hat honest. Positions are
    float64, or int64 if `initial` holds whole numbers of an integer type. `chains` is 4 unless `initial` has rows.

    >>> def correlated(x):
    ...     return -0.5 * (x[:, 0] ** 2 + x[:, 1] ** 2 - 1.6 * x[:, 0] * x[:, 1]) / (1 - 0.8**2)
    >>> found = sample(correlated, [0.0, 0.0], draws=4000, seed=0, names=["a", "b"])
    >>> found.draws.shape, bool((torch.corrcoef(found.flat.T)[0, 1] - 0.8).abs() < 0.05)
    (torch.Size([4, 4000, 2]), True)
    """
    sampler = as_spec(method, Sampler, "method")
    count, before = whole(draws, "draws", 1), whole(warmup, "warmup", 0)
    generator = as_generator(seed)
    position = _starts(initial, chains, generator)
    labels = as_names(names, tuple(position.shape[1:]))
    density = as_log_density(log_prob, "log_prob")
    with torch.no_grad():
        _refuse_impossible(density(position), position)
        state = sampler.init(position, density)
        kept = torch.empty((len(position), count, *position.shape[1:]), dtype=position.dtype, device=position.device)
        logs = torch.empty((len(position), count), dtype=torch.float64, device=position.device)
        records: dict[str, list[Tensor]] = {"acceptance_rate": []}
        with progress("sampling", before + count, show=verbose) as report:
            for index in range(before):
                state, info = sampler.step(state, density, generator)
                state = sampler.adapt(state, info, index, before)
                report(index + 1)
            for index in range(count):
                state, info = sampler.step(state, density, generator)
                kept[:, index], logs[:, index] = state.position, state.log_prob
                for name, value in {"acceptance_rate": info.acceptance, **info.stats}.items():
                    records.setdefault(name, []).append(value)
                report(before + index + 1)
    stats = {name: torch.stack(values, 1) for name, values in records.items()}
    found = Chains(kept, logs, stats["acceptance_rate"].mean(1), stats, labels)
    _warn(found)
    return found


def _starts(initial: Any, chains: int | None, generator: torch.Generator) -> Tensor:
    """(chains, *event) from one point, a row for each chain, or a distribution."""
    if isinstance(initial, Distribution):
        if initial.batch_shape:
            raise DataError(
                f"initial is a batch of {tuple(initial.batch_shape)} distributions; join them into one with "
                f"torch.distributions.Independent(…, {len(initial.batch_shape)})."
            )
        return as_real(draw(initial, generator, 4 if chains is None else whole(chains, "chains", 1)))
    try:
        point = initial.detach() if isinstance(initial, Tensor) else torch.from_numpy(np.array(initial))
    except (TypeError, ValueError) as error:
        raise DataError(f"initial must hold numbers; found {initial!r}.") from error
    point = as_real(point)
    if not bool(torch.isfinite(point.double()).all()) or point.numel() == 0:
        raise DataError(f"initial must hold finite numbers; found {shown(point) if point.numel() else 'none'}.")
    if point.ndim < 2:
        return point.expand(4 if chains is None else whole(chains, "chains", 1), *point.shape).clone()
    if chains is not None and chains != len(point):
        raise DataError(f"initial has {len(point)} rows, one for each chain, but chains={chains!r}.")
    return point.clone()


def _refuse_impossible(log_prob: Tensor, position: Tensor) -> None:
    impossible = log_prob == -torch.inf
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0])
        raise DataError(
            f"log_prob is −inf where chain {row} starts, at {shown(position[row])}; start where there is mass."
        )


def _warn(found: Chains) -> None:
    """Say so if the chains disagree or never moved."""
    if float(found.acceptance.max()) < 1e-3:
        warnings.warn(
            f"Of the moves proposed, {float(found.acceptance.mean()):.2g} were accepted: the chains stand still. "
            "Warm up for longer, or choose a smaller step or another proposal.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return
    rhat = found.rhat.nan_to_num(nan=0.0)
    if float(rhat.max()) > _AGREE:
        worst = int(rhat.argmax())
        name = found.names if isinstance(found.names, str) else found.names[worst]
        place = f"{name}[{worst}]" if isinstance(found.names, str) and rhat.ndim else name
        warnings.warn(
            f"The chains do not agree: R-hat of {place} is {float(rhat.max()):.2f}, above {_AGREE}. Use more draws, a "
            "longer warmup, other starts, or another method; a trace plot shows chains that are stuck.",
            ConvergenceWarning,
            stacklevel=3,
        )
