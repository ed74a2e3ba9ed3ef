"""A piecewise linear network on a segment or a polygon, as its exact pieces: cells, and an affine map on each.

    f(t) = A_c [t, 1]   for t in cell c

The network is read layer by layer. An affine layer changes every A_c; an activation with a kink at 0 cuts the cells
along the zeros of its units, which inside a cell are points or straight lines, and then changes rows of A_c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..inference.predictor import Predictor
from ..networks.layers.dropout import Dropout
from ..networks.layers.norm import BatchNorm, WeightNorm
from ..networks.layers.residual import Concatenate, Residual, ZeroResidual
from ..networks.layers.standardise import BEYOND, Standardise

__all__ = ["Cells", "read"]

THINNEST = 1e-10
"""The width of the thinnest cell, as a fraction of the figure: closer kinks are taken as one."""
MOST_CELLS = 10**6


class Cells:
    """Convex cells, each with its corners (corners, d), and a stack of affine maps (cells, units, d + 1) on them.

    The last map of the stack is the layer in hand; those below it are what skips have kept.
    """

    def __init__(self, corners: np.ndarray, start: np.ndarray) -> None:
        self.corners = [corners]
        self.stack = [start[None]]
        self.size = float(np.ptp(corners, 0).max())

    def __len__(self) -> int:
        return len(self.corners)

    def affine(self, weight: np.ndarray, bias: np.ndarray | None) -> None:
        """h ← W h + b."""
        self.stack[-1] = np.einsum("oi,cik->cok", weight, self.stack[-1])
        if bias is not None:
            self.stack[-1][..., -1] += bias

    def scale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """h ← factor · h + shift, unit by unit."""
        self.stack[-1] = self.stack[-1] * np.broadcast_to(factor, self.stack[-1].shape[1:2])[:, None]
        self.stack[-1][..., -1] += shift

    def bend(self, slope: float) -> None:
        """h ← max(h, 0) + slope · min(h, 0): cuts cells where a unit crosses 0."""
        maps = self.stack[-1]
        corners: list[np.ndarray] = []
        parents: list[int] = []
        for cell, own in enumerate(self.corners):
            heights = own @ maps[cell, :, :-1].T + maps[cell, :, -1]  # (corners, units)
            least = THINNEST * self.size * np.linalg.norm(maps[cell, :, :-1], axis=1)
            crossing = np.flatnonzero((heights.min(0) < -least) & (heights.max(0) > least))
            parts = [own]
            for unit in crossing:
                row, near = maps[cell, unit], least[unit]
                parts = [piece for part in parts for piece in _cut(part, part @ row[:-1] + row[-1], near)]
            corners += parts
            parents += [cell] * len(parts)
            if len(corners) > MOST_CELLS:
                raise DataError(f"The network has more than {MOST_CELLS:,} linear pieces here; look at a smaller part.")
        self.corners = corners
        self.stack = [kept[parents] for kept in self.stack]
        middle = np.stack([own.mean(0) for own in corners])
        signed = np.einsum("cuk,ck->cu", self.stack[-1][..., :-1], middle) + self.stack[-1][..., -1]
        self.stack[-1] = self.stack[-1] * np.where(signed > 0, 1.0, slope)[..., None]

    def keep(self) -> None:
        """Keep the layer in hand for later, below itself."""
        self.stack.append(self.stack[-1].copy())

    def swap(self) -> None:
        """Take up the layer that was kept last, and keep the one in hand."""
        self.stack[-1], self.stack[-2] = self.stack[-2], self.stack[-1]

    def add(self) -> None:
        """Add the layer that was kept last."""
        kept = self.stack.pop()
        self.stack[-1] = self.stack[-1] + kept

    def join(self) -> None:
        """Put the layer that was kept last before the one in hand."""
        last = self.stack.pop()
        self.stack[-1] = np.concatenate([self.stack[-1], last], 1)


def read(module: nn.Module, cells: Cells) -> None:
    """Bring the cells through a module, which must be made of affine layers, ReLU, leaky ReLU and skips."""
    pass_through = READERS.get(type(module))  # a subclass may compute anything
    if pass_through is None:
        raise SpecError(
            f"{type(module).__name__} is not known to be piecewise linear; use linear layers, relu, leaky_relu, batch "
            "or weight norm, and residual or dense skips."
        )
    pass_through(module, cells)


def _all(modules: Iterable[nn.Module], cells: Cells) -> None:
    for module in modules:
        read(module, cells)


def _array(value: Tensor) -> np.ndarray:
    return value.detach().cpu().double().numpy()


def _affine(module: nn.Module, cells: Cells) -> None:
    weight, bias = _array(module.weight), None if module.bias is None else _array(module.bias)  # type: ignore[arg-type]
    if weight.shape[1] != cells.stack[-1].shape[1]:
        raise DataError(f"The network takes {weight.shape[1]} inputs; the points have {cells.stack[-1].shape[1]}.")
    cells.affine(weight, bias)


def _batch_norm(module: BatchNorm, cells: Cells) -> None:
    """As in evaluation, by the running averages."""
    if module.running_mean is None or module.running_var is None:
        raise SpecError("A batch norm without running averages looks at the batch; its network is not a function of x.")
    factor = _array(module.weight) / np.sqrt(_array(module.running_var) + module.eps)
    cells.scale(factor, _array(module.bias) - factor * _array(module.running_mean))


def _residual(module: Residual, cells: Cells) -> None:
    cells.keep()
    read(module.branch, cells)
    cells.swap()
    read(module.skip, cells)
    cells.add()


def _zero_residual(module: ZeroResidual, cells: Cells) -> None:
    """φ(0) = 0 for all activations that are read here."""
    cells.keep()
    _all((module.affine, module.activation), cells)
    cells.swap()
    read(module.skip, cells)
    cells.add()


def _concatenate(module: Concatenate, cells: Cells) -> None:
    cells.keep()
    read(module.branch, cells)
    cells.join()


def _predictor(module: Predictor, cells: Cells) -> None:
    """η without the numbers that do not depend on x."""
    if module.positions:
        raise SpecError("Targets at several positions have no single η; give the network itself, predictor.network.")
    if module.inputs is not None:
        if module.inputs.bend is not None:
            raise SpecError("Columns with heavy tails are bent smoothly; fit with standardise=False, or without them.")
        centre, scale = _array(module.inputs.centre), _array(module.inputs.scale)
        cells.scale(1 / scale, -centre / scale)
        _draw_in(module.inputs, cells)
    read(module.function, cells)
    if module.unit is not None:
        cells.scale(_array(module.unit), np.zeros(1))
    if module.offset is not None:
        cells.scale(np.ones(1), _array(module.offset))


def _draw_in(inputs: Standardise, cells: Cells) -> None:
    """z − 0.9 max(z − high, 0) + 0.9 max(low − z, 0): what lies far beyond the training rows counts for less."""
    if inputs.low is None or inputs.high is None:
        return
    for sign, end in ((1.0, _array(inputs.high)), (-1.0, _array(inputs.low))):
        cells.keep()
        cells.scale(np.full(1, sign), -sign * end)
        cells.bend(0.0)
        cells.scale(np.full(1, sign * (BEYOND - 1)), np.zeros(1))
        cells.add()


READERS: dict[type, Callable[..., None]] = {
    nn.Sequential: _all,
    nn.Linear: _affine,
    WeightNorm: _affine,
    BatchNorm: _batch_norm,
    nn.BatchNorm1d: _batch_norm,
    nn.ReLU: lambda module, cells: cells.bend(0.0),
    nn.LeakyReLU: lambda module, cells: cells.bend(module.negative_slope),
    nn.Identity: lambda module, cells: None,
    Dropout: lambda module, cells: None,  # evaluation
    nn.Dropout: lambda module, cells: None,
    Residual: _residual,
    ZeroResidual: _zero_residual,
    Concatenate: _concatenate,
    Predictor: _predictor,
}


def _cut(corners: np.ndarray, heights: np.ndarray, near: float) -> list[np.ndarray]:
    """A convex cell cut along the zeros of an affine function with these heights at its corners: two parts, or one."""
    if heights.min() >= -near or heights.max() <= near:
        return [corners]
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    count = len(corners)
    edges = count if count > 2 else 1  # a segment has one edge, a polygon as many as corners
    for i in range(count):
        height, point = heights[i], corners[i]
        if height >= -near:
            above.append(point)
        if height <= near:
            below.append(point)
        if i < edges:
            j = (i + 1) % count
            following = heights[j]
            if min(height, following) < -near and max(height, following) > near:
                zero = point + (corners[j] - point) * (height / (height - following))
                above.append(zero)
                below.append(zero)
    return [np.array(above), np.array(below)]
