"""Pictures of matrices with signs: of derivatives, and of a convolution as the Toeplitz matrix that it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.errors import DataError, SpecError
from ..theory.convolution import Kind, toeplitz
from ..theory.differentiate import hessian, jacobian
from .style import ACCENT, FAINT, INK, MAIN, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convolution", "derivatives"]

FEW = 12
"""Rows and columns up to which each number is written into its place."""
SMALL = 1e-9
"""Eigenvalues up to this fraction of the largest are 0."""


def derivatives(
    function: Any, x: Any, *, order: Literal[1, 2] = 1, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """∂f/∂x at x, outputs down and inputs across; with `order=2`, ∂²f/∂x² of a function with one output.

    `function` is anything that `theory.jacobian` takes. Blue numbers are positive, orange ones negative.

    >>> import torch
    >>> derivatives(lambda x: x[:1] * x[1:], torch.tensor([1.0, 2.0, 3.0])).get_title(loc="left")
    'Reverse mode takes 2 passes, forward mode 3'
    >>> derivatives(lambda x: x[0] ** 2 - x[1] ** 2, torch.zeros(2), order=2).get_title(loc="left")
    'f curves up along 1 of 2 directions, and down along 1'
    """
    if order not in (1, 2):
        raise SpecError(f"order={order!r} must be 1 (the Jacobian) or 2 (the Hessian).")
    inputs = int(np.asarray(x).size)
    if order == 1:
        matrix = jacobian(function, x).detach().numpy().reshape(-1, inputs)
        finding = f"Reverse mode takes {_counted(len(matrix), 'pass')}, forward mode {inputs}"
        note, rows = f"Jacobian ∂f/∂x at x, {len(matrix)} × {inputs}", "output"
    else:
        whole = hessian(function, x).detach().numpy()
        if whole.size != inputs**2:
            raise DataError(f"function must have one output to have one Hessian; it has {whole.size // inputs**2}.")
        matrix = whole.reshape(inputs, inputs)
        finding, note, rows = _curvature(matrix), f"Hessian ∂²f/∂x² at x, {inputs} × {inputs}", "input"
    return _drawn(matrix, titled(title, finding), note, "input", rows, ax)


def convolution(
    kernel: Any,
    size: int | Sequence[int],
    *,
    kind: Kind = "convolution",
    padding: Literal["valid", "zero", "full", "circular", "reflect"] = "valid",
    stride: int = 1,
    dilation: int = 1,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The matrix T(w) of a convolution, outputs down and inputs across: the same numbers along each diagonal.

    The arguments are those of `theory.toeplitz`.

    >>> convolution([1.0, -2.0, 1.0], 8).get_title(loc="left")
    'Each output reads 3 of 8 inputs, by the same 3 weights'
    """
    matrix = toeplitz(kernel, size, kind=kind, padding=padding, stride=stride, dilation=dilation).numpy()
    weights = int(np.asarray(kernel).size)
    most, inputs = int((matrix != 0).sum(1).max()), matrix.shape[1]
    reach = f"{most}" if (matrix != 0).sum(1).min() == most else f"up to {most}"
    finding = f"Each output reads {reach} of {inputs} inputs, by the same {_counted(weights, 'weight')}"
    note = f"{kind} as a matrix, {len(matrix)} × {inputs}: padding {padding}, stride {stride}, dilation {dilation}"
    return _drawn(matrix, titled(title, finding), note, "input", "output", ax)


def _drawn(matrix: np.ndarray, title: str, note: str, x: str, y: str, ax: Axes | None) -> Axes:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    ax = axes_of(ax, 5.6, 4.8)
    largest = float(np.abs(matrix).max()) or 1.0
    signs = LinearSegmentedColormap.from_list("signs", [ACCENT, "white", MAIN])
    wide = not 0.2 < len(matrix) / matrix.shape[1] < 5
    ax.imshow(
        matrix, cmap=signs, vmin=-largest, vmax=largest, interpolation="nearest", aspect="auto" if wide else "equal"
    )
    ax.add_patch(Rectangle((-0.5, -0.5), *matrix.shape[::-1], fill=False, edgecolor=FAINT, linewidth=1.5))
    if max(matrix.shape) <= FEW:
        for row, column in zip(*np.nonzero(matrix), strict=True):
            value = matrix[row, column]
            colour = "white" if abs(value) > 0.6 * largest else INK
            ax.text(column, row, f"{value:.2g}".replace("-", "−"), ha="center", va="center", fontsize=8, color=colour)
    finish(ax, title=title, note=f"{note}; blue is positive, orange negative", x=x, y=y, grid=None)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _curvature(matrix: np.ndarray) -> str:
    values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    small = SMALL * np.abs(values).max()
    up, down = int((values > small).sum()), int((values < -small).sum())
    if not up and not down:
        return "f does not curve"
    if up == len(values) or down == len(values):
        return f"f curves {'up' if up else 'down'} along every direction"
    parts = [f"{way} along {count}" for way, count in (("up", up), ("down", down)) if count]
    return f"f curves {parts[0]} of {len(values)} directions" + "".join(f", and {part}" for part in parts[1:])


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "es" if name.endswith("s") else "s")
