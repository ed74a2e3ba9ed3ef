"""The picture of a Bayesian network: its graph, and what is believed of each variable given the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.takes import takes
from ..models.bayesian_network.dag import Dag
from ..models.bayesian_network.layers import Drawing, draw_layers
from ..models.bayesian_network.model import BayesianNetwork
from .style import ACCENT, BAND, INK, MAIN, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["network_graph"]

WIDTH, LINE, GAP = 0.86, 0.15, 0.55
"""Of a box, of a line of text in it, and between layers, where one variable's room is 1 wide."""
SHOWN = 4
"""States that are drawn as bars; of more, the least probable are left out."""
MANY = 20
"""From this many variables on, a box tells the most probable state alone."""


@takes("a BayesianNetwork", BayesianNetwork)
def network_graph(
    model: BayesianNetwork,
    evidence: Mapping[str, Any] | None = None,
    soft: Mapping[str, Mapping[Any, float]] | None = None,
    *,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Boxes for variables, arrows from parents to children; a fitted network shows p(state | evidence) as bars.

    Variables with evidence stand out. With evidence the title tells which other variable it changed most.

    >>> network_graph(BayesianNetwork([("rain", "wet"), ("sprinkler", "wet")])).get_title(loc="left")
    '3 variables, 2 edges'
    """
    fitted = hasattr(model, "probabilities_")
    dag = Dag.from_edges(model.edges_ if fitted else model.edges)
    marginals = model.marginals(evidence, soft) if fitted else {}
    drawing = draw_layers(dag)
    lines = [_lines(marginals.get(name, {}), len(dag.names)) for name in dag.names]
    heights = LINE * (np.array([len(entries) for entries in lines]) + 1.5)
    y = _levels(drawing, heights)
    ax = axes_of(ax, max(5.6, 1.45 * np.ptp(drawing.places[:, 0]) + 1.6), max(2.4, 1.45 * (np.ptp(y) + 1.2)))
    known = {*(evidence or {}), *(soft or {})}
    for variable, name in enumerate(dag.names):
        centre = (float(drawing.places[variable, 0]), float(y[int(drawing.places[variable, 1])]))
        _box(ax, name, centre, float(heights[variable]), lines[variable], name in known)
        for parent in dag.parents[variable]:
            _arrow(ax, drawing, y, heights, parent, variable)
    finding, note = _finding(model, dag, marginals, evidence, soft)
    finish(ax, title=titled(title, finding), note=note, x="", y="", grid=None)
    ax.set(xticks=[], yticks=[], aspect="equal")
    sides = [
        *drawing.places[:, 0] - 0.5,
        *drawing.places[:, 0] + 0.5,
        *(x for b in drawing.bends.values() for x in b[:, 0]),
    ]
    ax.set_xlim(min(sides) - 0.02, max(sides) + 0.02)
    ax.set_ylim(y.min() - heights.max() / 2 - 0.05, y.max() + heights.max() / 2 + 0.05)
    return ax


def _lines(states: Mapping[Any, float], variables: int) -> list[tuple[str, float]]:
    """The states to show, with their probabilities."""
    ranked = sorted(states, key=states.__getitem__, reverse=True)[: 1 if variables >= MANY else SHOWN]
    return [(str(state), p) for state, p in states.items() if state in ranked]


def _levels(drawing: Drawing, heights: np.ndarray) -> np.ndarray:
    """The height of the middle of each layer, from 0 down: as far apart as their tallest boxes need."""
    layer = drawing.places[:, 1].astype(int)
    tallest = np.array([heights[layer == level].max() for level in range(layer.max() + 1)])
    return -np.concatenate([[0.0], np.cumsum((tallest[:-1] + tallest[1:]) / 2 + GAP)])


def _box(
    ax: Axes, name: str, centre: tuple[float, float], height: float, lines: list[tuple[str, float]], known: bool
) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    left, top = centre[0] - WIDTH / 2, centre[1] + height / 2
    colour = ACCENT if known else MUTED
    ax.add_patch(
        FancyBboxPatch(
            (left, centre[1] - height / 2),
            WIDTH,
            height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="white",
            edgecolor=colour,
            linewidth=1.6 if known else 0.9,
            zorder=2,
        )
    )
    size = 8.5 if len(name) <= 11 else 8.5 * 11 / len(name)
    ax.text(centre[0], top - 0.75 * LINE, name, ha="center", va="center", fontsize=size, color=INK, zorder=4)
    start, room = left + 0.04, WIDTH - 0.08
    for place, (state, p) in enumerate(lines):
        middle = top - (1.85 + place) * LINE
        for width, fill in ((1.0, BAND), (p, ACCENT if known else MAIN)):
            bar = Rectangle((start, middle - 0.43 * LINE), width * room, 0.86 * LINE, facecolor=fill, zorder=3)
            bar.set_alpha(None if width == 1.0 and fill == BAND else 0.35)  # the words on top must stay readable
            ax.add_patch(bar)
        label = state if len(state) <= 10 else f"{state[:9]}…"
        ax.text(start + 0.03, middle, label, ha="left", va="center", fontsize=7, color=INK, zorder=4)
        ax.text(left + WIDTH - 0.06, middle, percent(p), ha="right", va="center", fontsize=7, color=INK, zorder=4)


def _arrow(ax: Axes, drawing: Drawing, y: np.ndarray, heights: np.ndarray, parent: int, child: int) -> None:
    """A smooth line from the bottom of the parent, through the bends of the edge, to the top of the child."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    upper, lower = drawing.places[parent], drawing.places[child]
    points = [(upper[0], y[int(upper[1])] - heights[parent] / 2)]
    points += [(x, y[int(level)]) for x, level in drawing.bends[parent, child]]
    points.append((lower[0], y[int(lower[1])] + heights[child] / 2))
    path: list[tuple[float, float]] = [points[0]]
    for (start, lean), (end, next_lean) in pairwise(zip(points, _leans(points), strict=True)):
        step = 0.42 * (end[1] - start[1])
        path += [(start[0] + lean * step, start[1] + step), (end[0] - next_lean * step, end[1] - step), end]
    codes = [Path.MOVETO, *[Path.CURVE4] * (len(path) - 1)]
    ax.add_patch(
        FancyArrowPatch(
            path=Path(path, codes),
            arrowstyle="-|>",
            mutation_scale=9,
            color=MUTED,
            linewidth=1.0,
            fill=False,
            zorder=1,
        )
    )


def _leans(points: list[tuple[float, float]]) -> list[float]:
    """dx/dy at each point of a line: upright at its ends, leaning towards its neighbours at bends."""
    inner = [
        0.7 * (after[0] - before[0]) / (after[1] - before[1]) for before, after in zip(points, points[2:], strict=False)
    ]
    return [0.0, *inner, 0.0]


def _finding(
    model: BayesianNetwork,
    dag: Dag,
    marginals: Mapping[str, Mapping[Any, float]],
    evidence: Mapping[str, Any] | None,
    soft: Mapping[str, Mapping[Any, float]] | None,
) -> tuple[str, str]:
    """What the evidence changed most, in words, and the size of the network."""
    edges = sum(len(parents) for parents in dag.parents)
    size = f"{len(dag.names)} variables, {edges} edge{'s' if edges != 1 else ''}"
    others = [name for name in dag.names if name not in (evidence or {}) and name not in (soft or {})]
    if not marginals or not (evidence or soft) or not others:
        return size, ""
    before = model.marginals()
    moved = {
        (round(abs(p - before[name][state]), 9), name, str(state)): p
        for name in others
        for state, p in marginals[name].items()
    }
    change, name, state = max(moved)
    now = moved[change, name, state]
    known = [f"{variable}={value}" for variable, value in (evidence or {}).items()]
    known += [f"soft {variable}" for variable in soft or {}]
    given = ", ".join(known[:3]) + (" …" if len(known) > 3 else "")
    was = next(p for value, p in before[name].items() if str(value) == state)
    verb = "rises" if now > was else "falls"
    return f"Given {given}: {name}={state} {verb} from {percent(was)} to {percent(now)}", size
