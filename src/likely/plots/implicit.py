"""A picture of what steps of finite size do: how far gradient descent is from the flow of L, and of L + α/4‖∇L‖²."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from ..core.errors import DataError
from ..theory.implicit_regularisation import ImplicitRegularisation
from .style import ACCENT, INK, MAIN, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["implicit_regularisation"]


def implicit_regularisation(
    paths: ImplicitRegularisation, *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """The path of gradient descent and both flows in the plane, for two parameters; for more, distances at each step.

    >>> import torch
    >>> from likely.theory import implicit_regularisation as compared
    >>> def loss(theta): return (theta[0] * theta[1] - 1) ** 2
    >>> path = compared(loss, torch.tensor([2.0, 0.1]), rate=0.05, steps=20)
    >>> implicit_regularisation(path).get_title(loc="left")
    'The flow of L + α/4‖∇L‖² is 3.9 × as close as that of L'
    """
    if not isinstance(paths, ImplicitRegularisation):
        raise DataError(f"What theory.implicit_regularisation gives is needed; found a {type(paths).__name__}.")
    plain, modified = paths.plain_gap, paths.modified_gap
    nearer = plain / max(modified, np.finfo(float).tiny)
    text = f"The flow of L + α/4‖∇L‖² is {nearer:.2g} × as close as that of L"
    if nearer <= 1:
        text = "The flow of L + α/4‖∇L‖² is no closer than that of L"
    ax = axes_of(ax, 6.8, 4.4)
    note = f"largest distance of gradient descent to the flow of L {plain:.2g}, of L + α/4‖∇L‖² {modified:.2g}"
    if paths.path.shape[1] == 2:
        return _plane(ax, paths, titled(title, text), note)
    return _distances(ax, paths, titled(title, text), note)


def _plane(ax: Axes, paths: ImplicitRegularisation, title: str, note: str) -> Axes:
    for flow, colour, name in (
        (paths.plain, ACCENT, "flow of L"),
        (paths.modified, MAIN, "flow of L + α/4‖∇L‖²"),
    ):
        ax.plot(*_numbers(flow).T, color=colour, linewidth=1.8, label=name)
    ax.plot(*_numbers(paths.path).T, "o", color=INK, markersize=3.2, label="gradient descent", zorder=3)
    ax.legend(frameon=False, fontsize=9, labelcolor="linecolor")
    return finish(ax, title=title, note=note, x="θ₁", y="θ₂")


def _distances(ax: Axes, paths: ImplicitRegularisation, title: str, note: str) -> Axes:
    path = _numbers(paths.path)
    steps = np.arange(1, len(path))
    labels: dict[str, tuple[float, str]] = {}
    for name, flow, colour in (("L", paths.plain, ACCENT), ("L + α/4‖∇L‖²", paths.modified, MAIN)):
        gap = np.linalg.norm(path - _numbers(flow), axis=1)[1:]
        gap = np.maximum(gap, np.finfo(np.float32).tiny)
        ax.plot(steps, gap, color=colour, linewidth=1.8, label=name)
        labels[name] = (float(gap[-1]), colour)
    ax.set_yscale("log")
    finish(ax, title=title, note=note, x="step of gradient descent", y="distance to the flow")
    side_labels(ax, float(steps[-1]), labels)
    return ax


def _numbers(path: Tensor) -> np.ndarray:
    return path.detach().double().cpu().numpy()
