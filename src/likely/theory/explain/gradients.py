"""Explanations by gradients: at the row itself, along the way to it, and around it.

saliency               ∂f(x)/∂x
integrated gradients   (x − b) ∘ ∫₀¹ ∂f/∂x (b + t(x − b)) dt,     whose sum is f(x) − f(b)
SmoothGrad             E ∂f/∂x (x + ε),   ε ~ Normal(0, σ²)

The integral is a sum over parts of the way. f is known at both ends of each: what the gradient in its middle leaves of
the change of f there is given out in proportion to the sizes of the part's attributions, or of the row's where it has
none, so that nothing is lost.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.errors import ApproximationWarning, DataError, SpecError
from ...core.random import isolated, seed_of
from ...core.spec import is_integer
from ...models import Classifier
from ...models.supervised.base import as_array
from .attribution import Attribution
from .outputs import Output, differentiable
from .places import which_positions

__all__ = ["integrated_gradients", "saliency", "smooth_grad"]

CELLS = 16
"""Parts that the way from the baseline is cut into at first."""
ROUNDS = 40
"""How often parts are halved at most."""
MOST = 1000
"""Parts of a row beyond which it is left as it is."""
NEAR = 0.3
"""Parts are halved whose error is at least this much of the largest of their row."""
CHUNK = 1 << 22
"""Numbers of x that are differentiated at once."""


def saliency(model: Any, X: Any, target: Any = None, *, of: str = "auto", at: Any = None) -> Attribution:
    """∂f(x)/∂x of each row: how f changes with each input, in units of f per unit of X.

    f is the log-odds of the class `target` (by default each row's most probable class), its "probability", or a
    regressor's mean. `abs(values)` are the usual map; where f saturates, integrated gradients say more. The model is a
    `Classifier`, a `Regressor`, a `GaussianProcess`, or a function of tensors. Of a model that answers at positions,
    such as the pixels of an image, f is the mean over those `at`: one position (row, column), or a mask of them all.

    >>> from likely import Regressor
    >>> model = Regressor().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 5.0, 6.0])
    >>> bool(np.allclose(saliency(model, [[1.0, 1.0]]).values, model.coef_))
    True
    """
    output = _output(model, of, at)
    x = output.read(X)
    place = output.places(x, target)
    return _attribution(output, x, place, output.gradient(x, place), "saliency", model=model)


def integrated_gradients(
    model: Any,
    X: Any,
    target: Any = None,
    *,
    baseline: Any = 0.0,
    of: str = "auto",
    tol: float = 1e-4,
    at: Any = None,
) -> Attribution:
    """Gradients along the straight way from a `baseline` to each row, times the way: they sum to f(x) − f(baseline).

    `baseline` is a number, a row, or a row for each of X: what stands for "nothing there", such as a black image or
    the mean of the columns. Parts of the way are halved where gradients do not yet tell the change of f, as at the
    kinks of a ReLU network, until they do to `tol`, in units of f or of |f(x) − f(baseline)| if that is above 1, or
    there are a thousand; the rest is given out in proportion, so that the sum is exact. A warning says where f jumps,
    which no gradient tells. For `at` see `saliency`.

    >>> from likely import Classifier
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 3.0]], [0, 0, 1, 1]
    >>> model = Classifier(network="mlp([8])", inference="map(adam(0.1), epochs=50)", random_state=0).fit(X, y)
    >>> explained = integrated_gradients(model, X)
    >>> bool((abs(explained.gap) < 1e-9).all())
    True
    """
    if not 0 < tol < 1:
        raise SpecError(f"tol={tol!r} must lie between 0 and 1.")
    output = _output(model, of, at)
    x = output.read(X)
    start = _baseline(baseline, x)
    place = output.places(x, target)
    whole = _integrated(output, x, start, place, tol)
    _tell(output, x, place, whole, tol)
    return _attribution(
        output, x, place, whole.values, "integrated gradients", at_start=whole.start, at_end=whole.end, model=model
    )


def smooth_grad(
    model: Any,
    X: Any,
    target: Any = None,
    *,
    noise: float = 0.15,
    draws: int = 32,
    of: str = "auto",
    random_state: Any = None,
    at: Any = None,
) -> Attribution:
    """The mean gradient around each row: noise of `noise` times the standard deviation of each input of X is added.

    Of one row, or of inputs that do not vary, the deviation of all numbers of X is taken. `standard_error` says how
    exactly the mean of `draws` is known. For `at` see `saliency`.

    >>> from likely import Regressor
    >>> model = Regressor().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 5.0, 6.0])
    >>> bool(np.allclose(smooth_grad(model, [[1.0, 1.0], [2.0, 3.0]], random_state=0).values, model.coef_))
    True
    """
    if not noise > 0 or not is_integer(draws, 2):
        raise SpecError(f"noise={noise!r} must be positive, and draws={draws!r} 2 or more.")
    output = _output(model, of, at)
    x = output.read(X)
    place = output.places(x, target)
    overall = x.std() if x.numel() > 1 else x.new_ones(())
    overall = torch.where(overall > 0, overall, 1.0)
    own = x.std(0) if len(x) > 1 and x.ndim == 2 else overall.expand(x.shape[1:])
    scale = noise * torch.where(own > 0, own, overall)
    mean, square = torch.zeros_like(x, dtype=torch.float64), torch.zeros_like(x, dtype=torch.float64)
    with isolated(seed_of(random_state)):
        for count in range(1, draws + 1):  # Welford's sums
            gradient = output.gradient(x + scale * torch.randn_like(x), place).double()
            delta = gradient - mean
            mean += delta / count
            square += delta * (gradient - mean)
    error = (square / (draws * (draws - 1))).sqrt()
    return _attribution(output, x, place, mean, "SmoothGrad", error=error, model=model)


def _output(model: Any, of: str, at: Any) -> Output:
    output = differentiable(model, of, at)
    if at is None and isinstance(model, Classifier) and model.positions_:
        raise which_positions(model, model.positions_)
    return output


class _Integrals(NamedTuple):
    """Of each row: the attributions, f at both ends of the way, and how far it jumps between."""

    values: Tensor
    start: Tensor
    end: Tensor
    jump: Tensor
    """The largest change of f in one part of the way that is too short for it: the row's gradients are not so large."""


def _integrated(output: Output, x: Tensor, start: Tensor, place: Tensor, tol: float) -> _Integrals:
    rows = max(1, min(len(x), CHUNK // (CELLS * max(1, x[0].numel()))))
    parts = [
        _of_rows(output, x[i : i + rows], start[i : i + rows], place[i : i + rows], tol) for i in range(0, len(x), rows)
    ]
    return _Integrals(*(torch.cat(own) for own in zip(*parts, strict=True)))


def _tell(output: Output, x: Tensor, place: Tensor, whole: _Integrals, tol: float) -> None:
    """Warn of rows where f is another one when it is asked again, or jumps on the way."""
    allowed = tol * (whole.end - whole.start).abs().clamp_min(1.0)
    again = (output.values(x, place).double() - whole.end).abs()
    if bool((again > allowed).any()):
        row = int((again - allowed).argmax())
        what = (
            f"f(x) differs by {float(again[row]):.2g} when it is asked again: f is drawn at random, and so are shares"
        )
    elif bool((whole.jump > allowed).any()):
        row = int((whole.jump - allowed).argmax())
        what = f"f jumps by {float(whole.jump[row]):.2g} on the way, which no gradient tells"
        gap = whole.values[row].sum() - (whole.end[row] - whole.start[row])
        lost = abs(float(gap)) > float(allowed[row])  # where all gradients are 0, none has a claim
        what += "; no input has a share of that" if lost else "; it is shared as the gradients beside it are"
    else:
        return
    warnings.warn(f"Row {row}: {what}.", ApproximationWarning, stacklevel=4)


class _Cells(NamedTuple):
    """Parts of the ways of rows, with f at both ends and in the middle, and the gradient in the middle."""

    owner: Tensor
    low: Tensor
    width: Tensor
    ends: Tensor
    """f at the two ends, (cells, 2)."""
    middle: Tensor
    gradient: Tensor

    def only(self, chosen: Tensor) -> _Cells:
        return _Cells(*(part[chosen] for part in self))


def _of_rows(output: Output, x: Tensor, start: Tensor, place: Tensor, tol: float) -> _Integrals:
    """Each cell has a gradient in its middle and a change of f; those that disagree most are halved, row by row."""
    way, count = x - start, len(x)

    def looked_at(owner: Tensor, low: Tensor, width: Tensor, ends: Tensor) -> _Cells:
        points = start[owner] + _column(low + width / 2, way).to(way) * way[owner]
        middle, gradient = output.with_gradient(points, place[owner])
        return _Cells(owner, low, width, ends, middle.double(), gradient)

    def wrong(cells: _Cells) -> Tensor:
        along = (cells.gradient * way[cells.owner]).flatten(1).sum(1).double()
        return along * cells.width - (cells.ends[:, 1] - cells.ends[:, 0])

    def add(cells: _Cells) -> None:
        error = wrong(cells)
        shares = cells.gradient.double() * way[cells.owner].double() * _column(cells.width, x)
        sizes = shares.abs()
        whole = sizes.flatten(1).sum(1)
        rest = torch.where(whole > 0, (cells.ends[:, 1] - cells.ends[:, 0] - shares.flatten(1).sum(1)) / whole, 0.0)
        total.index_add_(0, cells.owner, shares + _column(rest, x) * sizes)
        settled.index_add_(0, cells.owner, error)
        along = shares.flatten(1).sum(1).abs()
        steepest = torch.zeros_like(settled).scatter_reduce(0, cells.owner, along / cells.width, "amax")
        jumps = error.abs() > 2 * steepest[cells.owner] * cells.width  # more than a kink between gradients can leave
        jump.scatter_reduce_(0, cells.owner, torch.where(jumps, error.abs(), 0.0), "amax")

    marks = torch.linspace(0, 1, CELLS + 1, dtype=torch.float64, device=x.device)
    points = [*(start + mark.to(x) * way for mark in marks[:-1]), x]
    at_marks = torch.stack([output.values(point, place).double() for point in points], 1)
    allowed = 0.5 * tol * (at_marks[:, -1] - at_marks[:, 0]).abs().clamp_min(1.0)
    total = torch.zeros_like(x, dtype=torch.float64)
    settled, jump = torch.zeros(2, count, dtype=torch.float64, device=x.device)  # what cells that are done are wrong by
    ends = torch.stack([at_marks[:, :-1], at_marks[:, 1:]], -1).reshape(-1, 2)
    owner = torch.arange(count, device=x.device).repeat_interleave(CELLS)
    cells = looked_at(owner, marks[:-1].repeat(count), marks.diff().repeat(count), ends)
    for _ in range(ROUNDS):
        error = wrong(cells)
        worst = torch.zeros_like(allowed).scatter_reduce(0, cells.owner, error.abs(), "amax")
        open_rows = (settled.index_add(0, cells.owner, error).abs() > allowed) | (worst > 0.5 * allowed)
        open_rows &= (
            torch.bincount(cells.owner, minlength=count) <= MOST
        )  # else f has many kinks, or is drawn at random
        kept = ~open_rows[cells.owner]
        add(cells.only(kept))
        cells, error = cells.only(~kept), error[~kept]
        if not len(error):
            break
        halved = error.abs() >= NEAR * worst[cells.owner]
        left, rest = cells.only(halved), cells.only(~halved)
        parts = looked_at(
            left.owner.repeat(2),
            torch.cat([left.low, left.low + left.width / 2]),
            left.width.repeat(2) / 2,
            torch.cat([torch.stack([left.ends[:, 0], left.middle], 1), torch.stack([left.middle, left.ends[:, 1]], 1)]),
        )
        cells = _Cells(*(torch.cat([one, other]) for one, other in zip(rest, parts, strict=True)))
    add(cells)
    whole = total.abs().flatten(1).sum(1)
    lost = at_marks[:, -1] - at_marks[:, 0] - total.flatten(1).sum(1)  # by parts whose middle has no gradient at all
    shared = (whole > 0) & (jump <= 2 * allowed)
    total += _column(torch.where(shared, lost / whole, 0.0), x) * total.abs()
    return _Integrals(total, at_marks[:, 0], at_marks[:, -1], jump)


def _column(values: Tensor, like: Tensor) -> Tensor:
    return values.view(-1, *(1,) * (like.ndim - 1))


def _baseline(baseline: Any, x: Tensor) -> Tensor:
    try:
        given = baseline if isinstance(baseline, Tensor) else torch.as_tensor(np.asarray(baseline, dtype=float))
        start = given.to(x).expand_as(x)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = getattr(baseline, "shape", None) or type(baseline).__name__
        raise DataError(
            f"baseline is {shape}; a number, a row {tuple(x.shape[1:])} or rows {tuple(x.shape)} would do."
        ) from error
    if not bool(start.isfinite().all()):
        raise DataError("baseline has values that are not finite.")
    return start


def _attribution(
    output: Output,
    x: Tensor,
    place: Tensor,
    values: Tensor,
    method: str,
    *,
    at_start: Tensor | None = None,
    at_end: Tensor | None = None,
    model: Any = None,
    error: Tensor | None = None,
) -> Attribution:
    names = getattr(model, "feature_names_in_", None)
    return Attribution(
        as_array(values.double()),
        method,
        output.of,
        output.explained,
        as_array(output.values(x, place).double() if at_end is None else at_end),
        None if at_start is None else as_array(at_start),
        None if error is None else as_array(error),
        as_array(x.double()),
        None if names is None else tuple(map(str, names)),
    )
