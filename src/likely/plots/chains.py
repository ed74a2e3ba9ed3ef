"""Pictures of Markov chains: where each chain went (trace), and whether all chains say the same (rank)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from ..core.errors import DataError
from ..core.takes import takes
from .style import ACCENT, BAND, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["rank", "trace"]

SHADES = (MAIN, ACCENT, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
SHOWN = 12
"""Chains that are drawn one by one; of more, every k-th."""


@takes("draws: what sampling.sample(…) gives, or an array (chains, draws, …)")
def trace(
    chains: Any,
    coordinate: int | tuple[int, ...] = 0,
    *,
    name: str | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The draws of one coordinate in their order, one line per chain, with their density at the right.

    `chains` is what `likely.sampling.sample` gave, or an array (chains, draws, …).

    >>> import torch
    >>> from likely.sampling import sample
    >>> chains = sample(torch.distributions.Normal(0.0, 1.0), 0.0, random_state=0)
    >>> trace(chains).get_title(loc="left")[:16]
    'The chains agree'
    """
    draws, label = _coordinate(chains, coordinate, name)
    ax = axes_of(ax, 7.0, 3.6)
    count, length = draws.shape
    for place, chain in enumerate(_some(count)):
        ax.plot(draws[chain], color=SHADES[place % len(SHADES)], linewidth=0.5, alpha=0.8)
    ax.set_xlim(0, length)
    side = ax.inset_axes((1.01, 0, 0.14, 1), sharey=ax)
    edges = np.histogram_bin_edges(draws, bins=min(40, max(8, int(np.sqrt(length)))))
    middle = 0.5 * (edges[1:] + edges[:-1])
    for place, chain in enumerate(_some(count)):
        density = np.histogram(draws[chain], edges, density=True)[0]
        side.plot(density, middle, color=SHADES[place % len(SHADES)], linewidth=1.0, alpha=0.9)
    side.axis("off")
    few = f"every {-(-count // SHOWN)}th of {count} chains" if count > SHOWN else f"{count} chains"
    note = f"{few}, {length} draws each; their densities at the right"
    return finish(ax, title=titled(title, _finding(draws, label)), x="draw", y=label, note=note)


@takes("draws: what sampling.sample(…) gives, or an array (chains, draws, …)")
def rank(
    chains: Any,
    coordinate: int | tuple[int, ...] = 0,
    *,
    bins: int = 20,
    name: str | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """How often the draws of each chain are small or large among all draws: level where chains agree.

    The band holds 95 % of the bars of chains that agree and whose draws are independent.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> rank(draws, name="mu").get_title(loc="left")
    'The chains agree on mu (R-hat 1.00)'
    """
    from scipy.stats import binom

    draws, label = _coordinate(chains, coordinate, name)
    ax = axes_of(ax, 6.2, 3.8)
    count, length = draws.shape
    ranks = (rankdata(draws.ravel()).reshape(draws.shape) - 0.5) / draws.size
    expected = length / bins
    low, high = binom.ppf([0.025, 0.975], length, 1 / bins) / expected
    edges = np.linspace(0, 1, bins + 1)
    ax.axhspan(low, high, color=BAND, zorder=0)
    ax.axhline(1, color=MUTED, linewidth=0.8)
    for order, chain in enumerate(_some(count)):
        height = np.histogram(ranks[chain], edges)[0] / expected
        ax.stairs(height, edges, color=SHADES[order % len(SHADES)], linewidth=1.2, alpha=0.85)
    ax.set_ylim(0, max(2.0, ax.get_ylim()[1]))
    ax.set_xlim(0, 1)
    note = f"{count} chains, {length} draws each; grey: 95 % of bars if draws were independent"
    return finish(
        ax,
        title=titled(title, _finding(draws, label)),
        x="rank among all draws",
        y="relative count",
        note=note,
        grid="y",
    )


def _coordinate(chains: Any, coordinate: int | tuple[int, ...], name: str | None) -> tuple[np.ndarray, str]:
    """The draws of one coordinate (chains, draws), and what it is called."""
    draws = np.asarray(getattr(chains, "draws", chains), dtype=float)
    if draws.ndim < 2 or 0 in draws.shape:
        raise DataError(f"chains must have the axes (chains, draws, …); found the shape {draws.shape}.")
    names = getattr(chains, "names", "x")
    if draws.ndim == 2:
        return draws, name or (names if isinstance(names, str) else names[0])
    place = coordinate if isinstance(coordinate, tuple) else (coordinate,)
    event = draws.shape[2:]
    inside = len(place) == len(event) and all(-size <= at < size for at, size in zip(place, event, strict=False))
    if not inside:
        raise DataError(f"coordinate={coordinate!r} is not an index into draws of shape {event}.")
    if name is None:
        name = f"{names}[{', '.join(map(str, place))}]" if isinstance(names, str) else names[place[0]]
    return draws.reshape(*draws.shape[:2], -1)[:, :, int(np.ravel_multi_index(place, event, mode="wrap"))], name


def _some(count: int) -> range:
    return range(0, count, -(-count // SHOWN))


def _finding(draws: np.ndarray, label: str) -> str:
    import torch

    from ..sampling.chains import Chains

    values = torch.as_tensor(draws)
    chains = Chains(values, values, values)
    rhat = float(chains.rhat)
    if np.isnan(rhat):
        return f"Draws of {label}"
    return f"The chains {'agree' if chains.agree else 'do not agree'} on {label} (R-hat {rhat:.2f})"
