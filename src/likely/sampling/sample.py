"""Markov chain Monte Carlo for any log-density: start, warm up, draw, and say whether the chains agree."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import Distribution

from ..core.checkpoint import Checkpoint, Saver
from ..core.errors import ConvergenceWarning, DataError, ModelFileError
from ..core.spec import as_spec
from .chains import Chains, as_names
from .constrained import Bijection, Support, bijection, support_of
from .convergence import AGREE
from .density import (
    LogDensity,
    as_generator,
    as_log_density,
    as_real,
    draw,
    integer,
    shown,
)
from .driver import Driver, Length
from .metropolis_hastings import MetropolisHastings
from .sampler import Sampler

__all__ = ["sample"]

_LOST = 0.01


def sample(
    log_prob: LogDensity | Distribution,
    initial: ArrayLike | Tensor | Distribution,
    method: Sampler | str = MetropolisHastings(),  # noqa: B008 (a frozen value)
    draws: int = 1000,
    warmup: int = 500,
    chains: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
    names: str | Sequence[str] | None = None,
    support: Support | None = None,
    thin: int = 1,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    stream: str | None = None,
) -> Chains:
    """Draws from exp(log_prob), which need not be normalised, by several chains side by side.

    `log_prob` takes positions (chains, *event), one row per chain, and gives (chains,); a torch distribution will do.
    `initial` is one point (a number or a vector) from which all chains start, a row for each chain (two axes or
    more), or a distribution to draw the starts from: starts apart from one another make R-hat honest. Positions are
    float64, or int64 if `initial` holds integers of an integer type. `chains` is 4 unless `initial` has rows.

    `support` is where the density lives if that is not everywhere: a torch constraint (`constraints.positive`,
    `constraints.simplex`), a list with one for each coordinate or (constraint, length) for each block of them, or a
    dict for some of the coordinates by their `names`. Chains then move in unconstrained numbers, with the change of
    volume added; draws and `log_prob` are those of the density as given. Methods that follow the gradient need it; a
    torch distribution brings its own.

    `thin` keeps every thin-th step. `checkpoint` is a path (or a `Checkpoint`): the same call after one that was killed
    goes on from it to the same bits. `stream` is the path of a file for the draws; without one they are kept in a
    temporary file once they take more than a gigabyte.

    >>> def correlated(x):
    ...     return -0.5 * (x[:, 0] ** 2 + x[:, 1] ** 2 - 1.6 * x[:, 0] * x[:, 1]) / (1 - 0.8**2)
    >>> chains = sample(correlated, [0.0, 0.0], draws=4000, random_state=0, names=["a", "b"])
    >>> chains.draws.shape, bool((torch.corrcoef(chains.flat.T)[0, 1] - 0.8).abs() < 0.05)
    (torch.Size([4, 4000, 2]), True)
    >>> def half_normal(x):
    ...     return -0.5 * x.square()
    >>> chains = sample(half_normal, 1.0, "nuts()", random_state=0, support=torch.distributions.constraints.positive)
    >>> bool((chains.draws > 0).all()), bool((chains.mean - (2 / torch.pi) ** 0.5).abs() < 0.05)
    (True, True)
    """
    sampler = as_spec(method, Sampler, "method")
    length = Length(integer(draws, "draws", 1), integer(warmup, "warmup", 0), integer(thin, "thin", 1))
    generator = as_generator(random_state)
    position = _starts(initial, chains, generator)
    labels = as_names(names, tuple(position.shape[1:]))
    density = as_log_density(log_prob, "log_prob")
    saver = Saver(checkpoint, _fingerprint(sampler, length, position, random_state))
    with torch.no_grad():
        _refuse_impossible(density(position), position)
        space = _space(log_prob, support, sampler, tuple(position.shape[1:]), labels)
        if space is not None:
            position, density = space.inverse(position), space.density(density)
        driver = Driver(sampler, density, generator, length, saver, stream=stream, verbose=verbose)
        saved = saver.read()
        if saved is None:
            driver.begin(position)
        else:
            driver.resume(saved)
            _refuse_other(driver, checkpoint)
        driver.run()
        kept, logs = driver.draws.to(position.device), driver.log_prob.to(position.device)
        if space is not None:
            inside, volume = space.forward(kept.flatten(0, 1))
            kept, logs = inside.reshape(*kept.shape[:2], *inside.shape[1:]), logs - volume.reshape(logs.shape)
    result = Chains(kept, logs, driver.stats["acceptance_rate"].mean(1), driver.stats, labels)
    _warn(result)
    return result


def _space(
    log_prob: Any, support: Support | None, sampler: Sampler, event: tuple[int, ...], names: str | tuple[str, ...]
) -> Bijection | None:
    """How the chains' positions are made free, if they must be: the support given, or that of a distribution."""
    if support is None and sampler.unbounded and isinstance(log_prob, Distribution):
        support = support_of(log_prob)
    return None if support is None else bijection(support, event, names)


def _fingerprint(sampler: Sampler, length: Length, position: Tensor, random_state: Any) -> dict[str, Any]:
    """What tells one call from another; a checkpoint of another is refused."""
    return {
        "method": repr(sampler),
        "length": [length.draws, length.warmup, length.thin],
        "shape": list(position.shape),
        "random_state": random_state if isinstance(random_state, int) else None,
    }


def _refuse_other(driver: Driver, checkpoint: Any) -> None:
    """Refuse the chains of another density: there, log p of their positions is not what was written."""
    now, written = driver.density(driver.state.position), driver.state.log_prob
    gap = (now - written).abs() > 1e-6 * (1 + written.abs())
    if bool(gap.any()):
        row = int(gap.nonzero()[0])
        path = checkpoint.path if isinstance(checkpoint, Checkpoint) else os.fspath(checkpoint)
        raise ModelFileError(
            f"checkpoint {path} belongs to another density: where its chain {row} is, log_prob was "
            f"{float(written[row]):.6g}, now it is {float(now[row]):.6g}. Delete the file, or give another path."
        )


def _starts(initial: Any, chains: int | None, generator: torch.Generator) -> Tensor:
    """(chains, *event) from one point, a row for each chain, or a distribution."""
    if isinstance(initial, Distribution):
        if initial.batch_shape:
            raise DataError(
                f"initial is a batch of {tuple(initial.batch_shape)} distributions; join them into one with "
                f"torch.distributions.Independent(…, {len(initial.batch_shape)})."
            )
        return as_real(draw(initial, generator, 4 if chains is None else integer(chains, "chains", 1)))
    try:
        point = initial.detach() if isinstance(initial, Tensor) else torch.from_numpy(np.array(initial))
    except (TypeError, ValueError) as error:
        raise DataError(f"initial must hold numbers; found {initial!r}.") from error
    point = as_real(point)
    if not bool(torch.isfinite(point.double()).all()) or point.numel() == 0:
        raise DataError(f"initial must hold finite numbers; found {shown(point) if point.numel() else 'none'}.")
    if point.ndim < 2:
        return point.expand(4 if chains is None else integer(chains, "chains", 1), *point.shape).clone()
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


def _warn(chains: Chains) -> None:
    """Say so if the chains disagree, diverge or never moved."""
    if float(chains.acceptance.max()) < 1e-3:
        warnings.warn(
            f"Of the moves proposed, {float(chains.acceptance.mean()):.2g} were accepted: the chains stand still. "
            "Warm up for longer, or choose a smaller step or another proposal.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return
    lost = float(chains.stats["diverging"].double().mean()) if "diverging" in chains.stats else 0.0
    if lost > _LOST:
        warnings.warn(
            f"{lost:.1%} of the draws come from trajectories that diverged: there the density is steeper than the "
            "steps can follow, and the draws may miss a part of it. Try smaller steps (acceptance=0.95, or a "
            "step_size), or other parameters: logarithms of scales, effects in units of their scale.",
            ConvergenceWarning,
            stacklevel=3,
        )
    rhat = chains.rhat.nan_to_num(nan=0.0)
    if float(rhat.max()) > AGREE and not bool(chains.agree.all()):
        rhat = torch.where(chains.agree, 0.0, rhat)
        worst = int(rhat.argmax())
        name = chains.names if isinstance(chains.names, str) else chains.names[worst]
        label = f"{name}[{worst}]" if isinstance(chains.names, str) and rhat.ndim else name
        warnings.warn(
            f"The chains do not agree: R-hat of {label} is {float(rhat.max()):.2f}, above {AGREE}. Use more draws, a "
            "longer warmup, other starts, or another method; a trace plot shows chains that are stuck.",
            ConvergenceWarning,
            stacklevel=3,
        )
