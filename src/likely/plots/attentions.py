"""A picture of attention: where a decoder looks while it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .style import FAINT, INK, MAIN, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["attention"]

FEW = 12
"""Rows and columns up to which weights are written into their places."""
HALF = 0.5
"""A token that has more than this of a row is what the row mostly looks at."""
END = "(end)"


def attention(
    model: Any, source: str, target: str | None = None, *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """How much each token of the target, down, looks at each token of the source, across; each row sums to 1.

    Without a `target`, it is what the `Seq2Seq` predicts.

    >>> from likely import Seq2Seq
    >>> from likely.inference import MAP
    >>> model = Seq2Seq(inference=MAP(epochs=1), random_state=0).fit(["ab", "ba"], ["ba", "ab"])
    >>> ax = attention(model, "ab", "ba")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['b', 'a', '(end)']
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    target = model.predict([source])[0] if target is None else target
    weights = model.attention_weights(source, target)
    texts = zip((model.vocabularies_[0], model.vocabularies_[-1]), (source, target), strict=True)
    across, down = ([*vocabulary.split(text), END] for vocabulary, text in texts)
    ax = axes_of(ax, 0.9 + 0.42 * len(across), 1.4 + 0.36 * len(down))
    shades = LinearSegmentedColormap.from_list("weights", ["white", MAIN])
    ax.imshow(weights, cmap=shades, vmin=0.0, vmax=1.0, interpolation="nearest", aspect="auto")
    ax.add_patch(Rectangle((-0.5, -0.5), *weights.shape[::-1], fill=False, edgecolor=FAINT, linewidth=1.5))
    if max(weights.shape) <= FEW:
        for (row, column), value in np.ndenumerate(weights):
            if value >= 0.1:
                colour = "white" if value > HALF else INK
                ax.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=8, color=colour)
    sure = int((weights.max(1) > HALF).sum())
    finding = f"{sure} of {len(down)} tokens look mostly at one token of the source"
    finish(
        ax,
        title=titled(title, finding),
        note="weights of attention; each row sums to 1",
        x="source",
        y="target",
        grid=None,
    )
    ax.set_xticks(range(len(across)), [_shown(token) for token in across], rotation=60, ha="right")
    ax.set_yticks(range(len(down)), [_shown(token) for token in down])
    return ax


def _shown(token: str) -> str:
    """A token with its spaces made visible, unless it is a word with one before it."""
    return token.strip() or "␣"
