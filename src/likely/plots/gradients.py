"""Pictures of gradient health: what comes back to each layer, what goes forward, and how alike input gradients are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..theory.gradient_health import Autocorrelation, GradientHealth
from .mixtures import COLOURS
from .style import INK, MUTED, axes_of, finish, percent, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["gradients", "shattering"]

DEAD = 0.5
"""The fraction of dead units from which a layer is marked."""


def gradients(
    reports: GradientHealth | Mapping[str, GradientHealth], *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """Gradient norms by layer on a logarithmic scale and, below, activations; one report or several by name.

    Rings mark layers half or more of whose units are dead. A norm of 0, whose logarithm is −∞, is left out.

    >>> from likely.networks import MLP
    >>> from likely.theory.gradient_health import gradient_health
    >>> X = np.random.default_rng(0).normal(size=(50, 16))
    >>> gradients(gradient_health(MLP((64,) * 10), X)).get_title(loc="left")
    'Gradients stay level: a factor of ... a layer on the way back'
    """
    from matplotlib.ticker import MaxNLocator

    named = _named(reports, (GradientHealth,), "gradients draws what theory.gradient_health returns")
    ax = axes_of(ax, 6.6, 5.2)
    below = ax.inset_axes((0, -0.28, 1, 0.21), sharex=ax)
    ends: dict[str, tuple[float, str]] = {}
    marked = False
    for place, (name, report) in enumerate(named.items()):
        colour = COLOURS[place % len(COLOURS)]
        layers = np.arange(1, len(report.layers) + 1)
        back = _positive([layer.gradient for layer in report.layers])
        forward = _positive([layer.activation for layer in report.layers])
        mark = "o" if len(layers) <= 60 else ""
        ax.plot(layers, back, color=colour, linewidth=1.6, marker=mark, markersize=3.2, label=name or "gradient")
        below.plot(layers, forward, color=colour, linewidth=1.4, label=name or "activation")
        dead = np.array([layer.dead >= DEAD for layer in report.layers])
        if dead.any():
            marked = True
            style: dict[str, Any] = {"markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.2, "color": INK}
            ax.plot(layers[dead], back[dead], "o", label="dead", **style)
        seen = forward[np.isfinite(forward)]
        if name and len(seen):
            ends[name] = (float(seen[-1]), colour)
    for panel in (ax, below):
        _decades(panel)
    ax.margins(x=0.02)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    note = "rings: half or more of the units are dead" if marked else ""
    finish(ax, title=titled(title, _finding(named)), note=note, x="", y="gradient norm")
    finish(below, title="", x="layer, from the input", y="activation")
    ax.tick_params(labelbottom=False)
    side_labels(below, max(len(report.layers) for report in named.values()), ends)
    return ax


def shattering(
    measured: Autocorrelation | GradientHealth | Mapping[str, Autocorrelation | GradientHealth],
    *,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """How alike input gradients are at points of a line, over how far apart these are; one curve or several by name.

    >>> import torch
    >>> from likely.theory.gradient_health import gradient_autocorrelation
    >>> line = gradient_autocorrelation(torch.nn.Linear(2, 1), [0.0, 0.0], [1.0, 1.0])
    >>> shattering({"linear": line}).get_ylabel()
    'autocorrelation'
    """
    what = "shattering draws what theory.gradient_autocorrelation or theory.gradient_health returns"
    named = _named(measured, (Autocorrelation, GradientHealth), what)
    curves: dict[str, Autocorrelation] = {}
    for name, one in named.items():
        curve = one.shattered if isinstance(one, GradientHealth) else one
        if curve is None:
            raise DataError(f"{name or 'The report'} has no autocorrelation: its inputs are not points on a line.")
        curves[name] = curve
    ax = axes_of(ax, 6.2, 4.0)
    ends: dict[str, tuple[float, str]] = {}
    for place, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[place % len(COLOURS)]
        ax.plot(curve.lags, curve.values, color=colour, linewidth=1.7, label=name or "autocorrelation")
        if name:
            ends[name] = (float(curve.values[-1]), colour)
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.set_ylim(min(-0.05, *(float(curve.values.min()) - 0.05 for curve in curves.values())), 1.05)
    ax.margins(x=0.02)
    side_labels(ax, max(float(curve.lags[-1]) for curve in curves.values()), ends)
    return finish(
        ax,
        title=titled(title, _likeness(curves)),
        note="1: the same gradient · 0: white noise",
        x="distance of two points, as a fraction of the line",
        y="autocorrelation",
    )


def _finding(named: Mapping[str, GradientHealth]) -> str:
    verbs = {"level": "stay level", "vanishing": "vanish", "exploding": "explode"}
    if len(named) == 1:
        (report,) = named.values()
        size = f"a factor of {report.gradient_growth:.3g} a layer on the way back"
        return f"Gradients {verbs[report.verdict]}: {size}"
    parts = []
    for verdict, verb in verbs.items():
        those = [name for name, report in named.items() if report.verdict == verdict]
        if those:
            parts.append(f"{verb} in {' and '.join(those)}")
    return f"Gradients {', '.join(parts)}"


def _likeness(curves: Mapping[str, Autocorrelation]) -> str:
    def half(curve: Autocorrelation) -> str:
        far = curve.length
        return f"within {percent(far)} of the line" if np.isfinite(far) else "nowhere on it"

    if len(curves) == 1:
        (curve,) = curves.values()
        return f"The likeness of gradients falls below ½ {half(curve)}"
    reach = {name: float(curve.values.mean()) for name, curve in curves.items()}
    least, most = min(reach, key=reach.__getitem__), max(reach, key=reach.__getitem__)
    return f"Gradients are most alike in {most}, least in {least}"


def _named(given: Any, kinds: tuple[type, ...], what: str) -> dict[str, Any]:
    named = {str(name): one for name, one in given.items()} if isinstance(given, Mapping) else {"": given}
    strange = next((f"a {type(one).__name__}" for one in named.values() if not isinstance(one, kinds)), None)
    if strange or not named:
        raise DataError(f"{what}, or a dict of them by name; found {strange or 'an empty one'}.")
    return named


def _decades(ax: Axes) -> None:
    """A logarithmic scale with a mark at every power of ten, or at every few, over two of them or more."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    low, high = np.log10(ax.get_ylim())
    room = max(0.0, 2.0 - (high - low)) / 2
    ax.set_ylim(10 ** (low - room), 10 ** (high + room))
    ax.yaxis.set_major_locator(LogLocator(10, numticks=7))
    ax.yaxis.set_minor_locator(NullLocator())


def _positive(values: list[float]) -> np.ndarray:
    """Values that a logarithmic scale can show; NaN for others."""
    array = np.array(values)
    return np.where((array > 0) & np.isfinite(array), array, np.nan)
