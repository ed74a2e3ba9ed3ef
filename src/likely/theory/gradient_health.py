"""Gradient health: what each layer sends forward, what comes back to it, and whether input gradients are shattered.

    δ_l = ∂L/∂z_l,   δ_{l−1} = φ′(z_{l−1}) ⊙ W_lᵀ δ_l

Each layer multiplies E‖δ‖² by about width · var(W) · E[φ′²]: below 1 gradients vanish geometrically with depth, above
1 they explode. Gradients of a good size may still be shattered: in deep plain networks ∂f/∂x at neighbouring points
are as unlike as white noise. Skips hold the likeness, ρ(lag) = E[g(t)·g(t + lag)] / E‖g‖².
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..core.random import isolated, seed_of
from ..data.rows import Inputs, Rows
from ..models import Regressor
from ..models.supervised.base import Supervised
from ..models.supervised.inputs import read_inputs
from ..networks import Network
from .differentiate import module_of

__all__ = ["Autocorrelation", "GradientHealth", "LayerHealth", "gradient_autocorrelation", "gradient_health"]

POINTS = 257
"""Points of the line along which gradients are compared."""


@dataclass(frozen=True)
class Autocorrelation:
    """Correlation of input gradients along a line as a function of distance: 1 is the same, 0 is white noise."""

    lags: np.ndarray
    """Distances, as fractions of the line's length."""
    values: np.ndarray

    @property
    def length(self) -> float:
        """The first lag at which the likeness is below ½; infinite if it never is."""
        below = np.flatnonzero(self.values < 0.5)
        return float(self.lags[below[0]]) if len(below) else float("inf")


@dataclass(frozen=True)
class LayerHealth:
    """One layer with weights, and the activation after it."""

    name: str
    units: int
    activation: float
    """Root mean square of what the layer gives, after its activation."""
    gradient: float
    """Root mean square over rows of ‖∂L/∂z‖, where z is what the layer gives before its activation."""
    weight_gradient: float
    """‖∂L/∂W‖ of the mean loss, over all parameters of the layer."""
    dead: float
    """Fraction of its outputs that are the same for every row."""


@dataclass(frozen=True)
class GradientHealth:
    """The report: layers from input to output, and the autocorrelation of input gradients."""

    layers: tuple[LayerHealth, ...]
    shattered: Autocorrelation | None
    """None where there is no line to follow (sequences of any lengths, graphs, tokens) or all gradients are 0."""

    @property
    def gradient_growth(self) -> float:
        """The factor by which gradients change from a layer to the one before it, as a geometric mean."""
        return _growth([layer.gradient for layer in self.layers[::-1]])

    @property
    def activation_growth(self) -> float:
        """The factor by which activations change from a layer to the next, without the last, which is η."""
        return _growth([layer.activation for layer in self.layers[:-1]])

    @property
    def verdict(self) -> str:
        """ "vanishing" or "exploding" if a factor of 1000 or more lies between last and first layer, else "level"."""
        total = self.gradient_growth ** (len(self.layers) - 1)
        return "vanishing" if total < 1e-3 else "exploding" if total > 1e3 else "level"

    def __str__(self) -> str:
        head = f"{'layer':<24}{'units':>8}{'activation':>12}{'gradient':>12}{'∂L/∂W':>12}{'dead':>7}"
        rows = [
            f"{layer.name:<24}{layer.units:>8}{layer.activation:>12.3g}{layer.gradient:>12.3g}"
            f"{layer.weight_gradient:>12.3g}{layer.dead:>7.0%}"
            for layer in self.layers
        ]
        foot = f"gradients are {self.verdict}: a factor of {self.gradient_growth:.3g} a layer on the way back"
        return "\n".join([head, *rows, foot])


def gradient_health(model: Any, X: Any, y: Any = None, *, random_state: Any = 0) -> GradientHealth:
    """What goes forward and comes back through each layer with weights, on rows X.

    `model` is a network spec (it is built, with one output), a module, or a fitted `Classifier` or `Regressor`. With y
    the loss of a row is −log p(y | x) of the estimator, or half the squared error of a network; without, it is the sum
    of the outputs, so that the network alone is seen. Input gradients are compared along the line through the middle of
    X on which X varies most, over ± 2 standard deviations.

    >>> from likely.networks import MLP
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> gradient_health(MLP((32,) * 20), X).verdict
    'level'
    >>> gradient_health(MLP((32,) * 20, activation="sigmoid", init="glorot"), X).verdict
    'vanishing'
    """
    x = _read(model, X)
    if len(x) < 2:
        raise DataError(f"X has {len(x)} row; two or more are needed to see which units are dead.")
    module = _module(model, x, random_state)
    x = x.to(next((p.dtype for p in module.parameters()), torch.get_default_dtype()))
    passes: dict[str, _Pass] = {}
    with _watching(module, passes), torch.enable_grad():
        eta = module(x)
        loss = _loss(model, eta, x, y)
    if not passes:
        raise SpecError("The network has no layer with a matrix of weights, so there is nothing to report.")
    layers = tuple(_layer(name, own, loss, len(x)) for name, own in passes.items())
    line = _line(x)
    return GradientHealth(layers, None if line is None else _autocorrelation(module, *line))


def gradient_autocorrelation(
    model: Any, start: Any, stop: Any, *, points: int = POINTS, random_state: Any = 0
) -> Autocorrelation:
    """ρ of the input gradients ∂f/∂x, with f the sum of the outputs, along the segment from `start` to `stop`.

    >>> line = gradient_autocorrelation(nn.Linear(3, 1), np.zeros(3), np.ones(3))   # everywhere the same gradient
    >>> line.values.min().round(6)
    np.float64(1.0)
    """
    first, last = (torch.as_tensor(np.asarray(end, dtype=float)) for end in (start, stop))
    if first.shape != last.shape or first.ndim < 1 or bool((first == last).all()):
        raise DataError(f"start and stop must be two different points of one shape; found {start!r} and {stop!r}.")
    if points < 3:
        raise DataError(f"points={points!r} must be 3 or more.")
    curve = _autocorrelation(_module(model, torch.stack([first, last]), random_state), first, last, points)
    if curve is None:
        raise SpecError("The network's outputs do not change smoothly with its inputs, so there are no gradients.")
    return curve


@dataclass
class _Pass:
    """What was seen of one layer: outputs of its weights, one for each call, and of the activation after them."""

    layer: nn.Module
    before: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)


@contextmanager
def _watching(module: nn.Module, passes: dict[str, _Pass]) -> Iterator[None]:
    """Keep what every layer with weights gives, and every module without parameters that follows it."""
    last: list[str] = []

    def seen(name: str, own: nn.Module, out: Any) -> None:
        if not isinstance(out, Tensor) or not out.requires_grad:
            return
        if _has_matrix(own):
            watched = passes.setdefault(name, _Pass(own))
            watched.before.append(out)
            watched.after.append(out)
            last[:] = [name]
        elif last and not [*own.parameters(), *own.children()] and out.shape == passes[last[0]].after[-1].shape:
            passes[last[0]].after[-1] = out

    hooks = [
        own.register_forward_hook(lambda layer, given, out, name=name: seen(name or type(layer).__name__, layer, out))
        for name, own in module.named_modules()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _has_matrix(module: nn.Module) -> bool:
    return any(value.ndim > 1 for value in module.parameters(recurse=False))


def _layer(name: str, own: _Pass, loss: Tensor, rows: int) -> LayerHealth:
    weights = list(own.layer.parameters(recurse=False))
    gradients = torch.autograd.grad(loss, [*own.before, *weights], retain_graph=True, allow_unused=True)
    back, to_weights = gradients[: len(own.before)], gradients[len(own.before) :]
    given = [after.detach().reshape(len(after), -1) for after in own.after]
    same = torch.cat([output.amax(0) == output.amin(0) for output in given])
    return LayerHealth(
        name=name.removeprefix("network."),
        units=int(own.before[0].shape[-1] if own.before[0].ndim == 2 else own.before[0][0].numel()),
        activation=(_squares(given) / sum(output.numel() for output in given)) ** 0.5,
        gradient=(_squares(back) / rows) ** 0.5,
        weight_gradient=_squares(to_weights) ** 0.5 / rows,
        dead=float(same.double().mean()),
    )


def _squares(tensors: Sequence[Tensor | None]) -> float:
    return sum(float(tensor.abs().double().square().sum()) for tensor in tensors if tensor is not None)


def _growth(sizes: list[float]) -> float:
    """e to the slope of the straight line through log sizes; 0 or infinity if a size is."""
    if len(sizes) < 2:
        return 1.0
    values = np.array(sizes)
    if (values == 0).any() or not np.isfinite(values).all():
        return 0.0 if np.isfinite(values).all() else float("inf")
    return float(np.exp(np.polyfit(np.arange(len(values)), np.log(values), 1)[0]))


def _autocorrelation(module: nn.Module, start: Tensor, stop: Tensor, points: int = POINTS) -> Autocorrelation | None:
    like = next((p for p in module.parameters()), start)
    along = torch.linspace(0, 1, points, dtype=torch.float64).reshape(-1, *(1 for _ in start.shape))
    line = (start.double() + along * (stop.double() - start.double())).to(like).requires_grad_()
    with torch.enable_grad():
        (gradients,) = torch.autograd.grad(module(line).sum(), line, allow_unused=True)
    if gradients is None:
        return None
    g = gradients.double().reshape(points, -1)
    products, length = g @ g.T, float(g.square().sum() / points)
    if not 0 < length < float("inf"):
        return None
    lags = np.arange(points // 2 + 1)
    values = np.array([float(products.diagonal(int(lag)).mean()) for lag in lags]) / length
    return Autocorrelation(lags / (points - 1), values)


def _line(x: Inputs) -> tuple[Tensor, Tensor] | None:
    """The ends of the line on which X varies most."""
    if isinstance(x, Rows):
        return None
    rows = x.double().reshape(len(x), -1)
    middle = rows.mean(0)
    _, sizes, directions = torch.linalg.svd(rows - middle, full_matrices=False)
    reach = 2 * sizes[0] / len(x) ** 0.5 * directions[0]
    return ((middle - reach).reshape(x.shape[1:]), (middle + reach).reshape(x.shape[1:])) if sizes[0] > 0 else None


def _loss(model: Any, eta: Tensor, x: Inputs, y: Any) -> Tensor:
    """The sum over rows of their losses."""
    if y is None:
        return eta.sum()
    if isinstance(model, Supervised):
        targets = model._read_targets(y, x, reset=False)
        model.likelihood_.check(targets)
        if bool(model.likelihood_.missing(targets).any()):
            raise DataError("y has missing targets (NaN, or −1 for labels); leave their rows out.")
        return -model.likelihood_.log_likelihood(eta, targets.to(eta))
    targets = torch.as_tensor(np.asarray(y)).to(eta)
    if targets.shape == eta.shape[:-1]:
        targets = targets.unsqueeze(-1)
    if targets.shape != eta.shape:
        raise DataError(f"y has shape {tuple(targets.shape)}; the network gives {tuple(eta.shape)}.")
    return 0.5 * (eta - targets).square().sum()


def _read(model: Any, X: Any) -> Inputs:
    return model._rows(X) if isinstance(model, Supervised) else read_inputs(Regressor(), X, reset=True)


def _module(model: Any, x: Inputs, random_state: Any) -> nn.Module:
    """A copy in evaluation, whose parameters have gradients."""
    if isinstance(model, Network):
        with isolated(seed_of(random_state)):
            model = model.build(x.shape if isinstance(x, Rows) else tuple(x.shape[1:]), 1)
    return copy.deepcopy(module_of(model)).eval().requires_grad_(True)
