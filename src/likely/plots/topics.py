"""The picture of topics: the most probable words of each, as bars in small multiples with one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from .style import FAINT, INK, MAIN, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..models.topics.latent_dirichlet import LatentDirichlet

__all__ = ["topics"]


@takes("a fitted LatentDirichlet", "components_", "document_prior_")
def topics(
    model: LatentDirichlet,
    vocabulary: Sequence[str] | None = None,
    *,
    which: Sequence[int] | None = None,
    words: int = 8,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The top `words` of some topics of a fitted `LatentDirichlet`: of those `which`, or of the six largest.

    >>> from likely import LatentDirichlet
    >>> X = np.array([[5, 4, 0, 0], [3, 2, 0, 0], [0, 0, 8, 9], [0, 0, 6, 7]])
    >>> model = LatentDirichlet(2, random_state=0).fit(X)
    >>> topics(model, ["cat", "dog", "stock", "bond"], words=2).get_title(loc="left")
    'The largest topic (bond, stock) has 67% of the words'
    """
    fraction = model.components_.sum(1) / model.components_.sum()
    largest = np.argsort(-fraction, kind="stable")
    chosen = [int(k) for k in (largest[:6] if which is None else which)]
    strange = [k for k in chosen if not 0 <= k < len(fraction)]
    if strange or not chosen:
        wrong = f"{strange[0]}" if strange else "nothing"
        raise DataError(f"which must name topics from 0 to {len(fraction) - 1}; found {wrong}.")
    if words < 1:
        raise DataError(f"words must be a positive integer; found {words}.")
    names = model.top_words(words, vocabulary)
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    ax = axes_of(ax, 1.2 + 2.6 * columns, 1.1 + rows * (0.65 + 0.19 * len(names[0])))
    first = int(largest[0])
    lead = ", ".join(str(name) for name in names[first][:3])
    finding = f"The largest topic ({lead}) has {percent(round(float(fraction[first]), 2))} of the words"
    finish(ax, title=titled(title, finding), note="probability of the top words in each topic", x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([])
    chances = model.topic_word_
    top = max(float(chances[k].max()) for k in chosen)
    for place, k in enumerate(chosen):
        row, column = divmod(place, columns)
        _bars(ax, (row, column), (rows, columns), names[k], np.sort(chances[k])[::-1], top, f"topic {k}", fraction[k])
    return ax


def _bars(
    ax: Axes,
    place: tuple[int, int],
    grid: tuple[int, int],
    names: list[str],
    chances: np.ndarray,
    top: float,
    title: str,
    fraction: float,
) -> None:
    """One topic in its cell of the grid; the left part of a cell is for the words."""
    (row, column), (rows, columns) = place, grid
    height = 1 - 0.4 / (0.65 + 0.19 * len(names))  # 0.4 inches for the title
    inset = ax.inset_axes(
        ((column + 0.36) / columns, 1 - (row + 1) / rows, 0.56 / columns, height / rows)  # x, y, width, height
    )
    heights = np.arange(len(names))
    inset.barh(heights, chances[: len(names)], color=MAIN, height=0.66)
    finish(inset, title="", x="", y="", grid=None)
    inset.set_title(f"{title} · {percent(round(float(fraction), 3))}", loc="left", fontsize=9.5, color=INK, pad=4)
    inset.set_yticks(heights, [str(name) for name in names], color=INK, fontsize=8.5)
    inset.set_ylim(len(names) - 0.4, -0.6)
    inset.set_xlim(0, 1.02 * top)
    inset.set_xticks([])
    inset.axvline(0, color=FAINT, linewidth=1)
    inset.text(chances[0] + 0.02 * top, 0, percent(round(float(chances[0]), 3)), va="center", color=MUTED, fontsize=8)
