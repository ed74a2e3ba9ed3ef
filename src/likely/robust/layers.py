"""What layers do to bounds: intervals that the numbers of a layer lie in, and how much a layer can lengthen a change.

    intervals   W [c − r, c + r] + b  ⊂  W c + b ± |W| r,       φ[l, h] = [min φ, max φ]
    lengths     ‖f(x) − f(x′)‖₂ ≤ L ‖x − x′‖₂:     L = the largest singular value of W, the largest slope of φ

A convolution's singular values are those of its Fourier transform, frequency by frequency, on a torus that holds the
image and the kernel's reach: the image is a part of that torus, and a part has no larger ones. Layers are looked up by
their class; a layer that is not known is refused by name.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.errors import SpecError
from ..inference.predictor import Predictor
from ..networks.layers.activation import Erf
from ..networks.layers.conv import ChannelNorm, Conv
from ..networks.layers.dropout import Dropout
from ..networks.layers.memory_order import Flatten
from ..networks.layers.norm import BatchNorm, WeightNorm
from ..networks.layers.resample import Downsample, PositionMean
from ..networks.layers.standardise import Standardise

__all__ = ["Bounded", "Known", "chain_of", "known"]

SMOOTH = 20.0
"""Where softplus, as torch has it, becomes the identity without a step that could be seen."""


class Bounded(NamedTuple):
    """Numbers between `low` and `high`, entry by entry."""

    low: Tensor
    high: Tensor


class Known(NamedTuple):
    """What is known of a layer: its intervals from those of its inputs, and its L for rows of a shape."""

    interval: Callable[[Any, Bounded], Bounded]
    length: Callable[[Any, torch.Size], float]


class Scaled(nn.Module):
    """x · unit + offset: what a predictor does after its network."""

    unit: Tensor
    offset: Tensor

    def __init__(self, unit: Tensor, offset: Tensor) -> None:
        super().__init__()
        self.register_buffer("unit", unit)
        self.register_buffer("offset", offset)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.unit + self.offset


def chain_of(module: nn.Module) -> list[nn.Module]:
    """The layers that rows go through one after the other, in float64; a module that is no such chain is refused.

    >>> [type(layer).__name__ for layer in chain_of(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU())))]
    ['Linear', 'ReLU']
    """
    own = copy.deepcopy(module).eval().double().requires_grad_(False)
    for layer in own.modules():
        if getattr(layer, "inplace", False):  # which would write over the bounds that go in
            layer.inplace = False  # type: ignore[assignment]
    return list(_layers(own))


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    if module._forward_hooks or module._forward_pre_hooks:
        raise SpecError(f"Bounds of a {type(module).__name__} with hooks are not known: they may change what it gives.")
    if isinstance(module, Predictor):
        if module.positions or module.shared is not None:
            raise SpecError("Bounds are known for one answer per row, without numbers that are shared by all rows.")
        if module.flatten:
            yield nn.Flatten()
        if module.inputs is not None:
            yield module.inputs
        yield from _layers(module.function)
        if module.unit is not None or module.offset is not None:
            like = torch.ones(1, dtype=torch.float64)
            yield Scaled(
                like if module.unit is None else module.unit, 0 * like if module.offset is None else module.offset
            )
    elif type(module) is nn.Sequential:
        for layer in module:
            yield from _layers(layer)
    else:
        known(module.norm if type(module) is ChannelNorm else module)  # type: ignore[arg-type]
        yield module


def known(layer: nn.Module) -> Known:
    """What is known of this layer."""
    found = LAYERS.get(type(layer))
    if found is None:
        names = ", ".join(sorted({cls.__name__ for cls in LAYERS if cls is not Scaled}))
        raise SpecError(f"Bounds of a network with a {type(layer).__name__} are not known; they are of {names}.")
    return found


# --- linear layers ------------------------------------------------------------------------------------------------
def _linear_interval(layer: Any, x: Bounded) -> Bounded:
    """Any layer with a weight and a bias."""
    spread = copy.deepcopy(layer)
    spread.weight = nn.Parameter(layer.weight.abs(), requires_grad=False)
    spread.bias = None
    centre, reach = layer((x.low + x.high) / 2), spread((x.high - x.low) / 2)
    return Bounded(centre - reach, centre + reach)


def _weight_norm_interval(layer: Any, x: Bounded) -> Bounded:
    plain = nn.Linear(layer.direction.shape[1], layer.direction.shape[0], bias=layer.bias is not None).double()
    plain.weight.data, plain.requires_grad_(False).bias = layer.weight.detach(), layer.bias
    return _linear_interval(plain, x)


def _spectral_norm(layer: Any, shape: torch.Size) -> float:
    return float(torch.linalg.matrix_norm(layer.weight, 2))


def _conv_norm(layer: Any, shape: torch.Size) -> float:
    ours = isinstance(layer, Conv)
    dilations = [layer.dilation] * layer.dims if ours else list(layer.dilation)
    padding = layer.padding if ours else layer.padding_mode
    if padding not in ("zero", "zeros", "valid", "circular") or (not ours and layer.groups != 1):
        raise SpecError(f"The length of {layer!r} is not known: padding must be of zeros or circular, groups 1.")
    reach = [d * (k - 1) for d, k in zip(dilations, layer.weight.shape[2:], strict=True)]
    turns = padding == "circular"
    spaced, repeats = layer.weight, 1
    for axis, (side, far, dilation) in enumerate(zip(shape[1:], reach, dilations, strict=True)):
        size = side if turns else side + far
        places = torch.arange(0, far + 1, dilation) % size  # a kernel beyond a circular image meets itself
        around = spaced.new_zeros(*spaced.shape[: axis + 2], size, *spaced.shape[axis + 3 :])
        spaced = around.index_add(axis + 2, places, spaced)
        if turns and not ours:  # more padding than the kernel needs gives the same outputs again
            repeats *= max(1, -(-(side + _padded(layer, axis) - far) // side))
    waves = torch.fft.rfftn(spaced, dim=tuple(range(2, spaced.ndim))).flatten(2).permute(2, 0, 1)
    return math.sqrt(repeats) * float(torch.linalg.matrix_norm(waves, 2).max())


def _padded(layer: Any, axis: int) -> int:
    """Positions that torch's convolution pads along an axis, at both ends together."""
    before = layer._reversed_padding_repeated_twice[::-1]
    return int(before[2 * axis] + before[2 * axis + 1])


# --- activations --------------------------------------------------------------------------------------------------
def _rising(layer: Any, x: Bounded) -> Bounded:
    return Bounded(layer(x.low), layer(x.high))


def _turns_at(place: float) -> Callable[[Any, Bounded], Bounded]:
    """The intervals of a function that rises or falls up to this place, and rises or falls from there on."""

    def interval(layer: Any, x: Bounded) -> Bounded:
        ends = [layer(part) for part in (*x, torch.full_like(x.low, place).clamp(x.low, x.high))]
        return Bounded(torch.stack(ends).amin(0), torch.stack(ends).amax(0))

    return interval


def _gelu_interval(layer: Any, x: Bounded) -> Bounded:
    return _turns_at(-0.7517915247 if layer.approximate == "none" else -0.7524614220)(layer, x)


def _softplus_interval(layer: Any, x: Bounded) -> Bounded:
    _check_softplus(layer)
    return _rising(layer, x)


def _softplus_length(layer: Any, shape: torch.Size) -> float:
    _check_softplus(layer)
    return 1.0


def _check_softplus(layer: Any) -> None:
    if layer.beta <= 0 or layer.threshold < SMOOTH:
        raise SpecError(f"Bounds of {layer!r} are not known: it jumps; beta above 0 and a threshold of 20 would do.")


def _constant(value: float) -> Callable[[Any, torch.Size], float]:
    return lambda layer, shape: value


def _elu_length(layer: Any, shape: torch.Size) -> float:
    return max(1.0, abs(layer.alpha))


def _leaky_length(layer: Any, shape: torch.Size) -> float:
    return max(1.0, abs(layer.negative_slope))


# --- what scales, pools and shapes --------------------------------------------------------------------------------
def _scaled_interval(layer: Any, x: Bounded) -> Bounded:
    ends = [layer(x.low), layer(x.high)]
    return Bounded(torch.minimum(*ends), torch.maximum(*ends))


def _scaled_length(layer: Any, shape: torch.Size) -> float:
    return float(layer.unit.abs().max())


def _batch_norm_interval(layer: Any, x: Bounded) -> Bounded:
    _running(layer)
    return _scaled_interval(layer, x)


def _running(layer: Any) -> Any:
    """A batch norm whose mean and variance are those of training; that of the batch would tie rows together."""
    own: Any = layer.norm if isinstance(layer, ChannelNorm) else layer
    if own.running_var is None:
        raise SpecError(f"Bounds of {own!r} are not known: without running statistics a row's answer hangs on others.")
    return own


def _batch_norm_length(layer: Any, shape: torch.Size) -> float:
    own = _running(layer)
    gain = torch.ones(()) if own.weight is None else own.weight.abs()
    return float((gain / (own.running_var + own.eps).sqrt()).max())


def _standard_length(layer: Standardise, shape: torch.Size) -> float:
    return float(1 / layer.scale.min())  # tails, and what is beyond the training rows, are flatter than the rest


def _max_pool_length(layer: Any, shape: torch.Size) -> float:
    axes = 1 if type(layer) is nn.MaxPool1d else 2  # also of rows that are series or images without channels
    kernel, stride, dilation = (
        (v,) * axes if isinstance(v, int) else v for v in (layer.kernel_size, layer.stride, layer.dilation)
    )
    if any(k > s for k, s in zip(kernel, stride, strict=True)) or any(d != 1 for d in dilation):
        raise SpecError(f"The length of {layer!r} is not known: its windows overlap.")
    return 1.0


def _mean_pool_length(layer: Any, shape: torch.Size) -> float:
    """√ of the largest row sum of A Aᵀ, of one sign: the largest singular value where windows do not overlap.

    Asked of the layer itself, so that windows cut off by the edge and divisors of the user's count as they are.
    """
    with torch.enable_grad():
        x = torch.zeros(1, *shape, dtype=torch.float64, requires_grad=True)
        (columns,) = torch.autograd.grad(layer(x).sum(), x)
    return math.sqrt(float(layer(columns).max()))


def _downsample_length(layer: Downsample, shape: torch.Size) -> float:
    return layer.factor ** (-0.5 * (len(shape) - 1)) if layer.how == "mean" else 1.0


def _mean_length(layer: PositionMean, shape: torch.Size) -> float:
    return math.prod(shape[1:]) ** -0.5


LAYERS: dict[type[nn.Module], Known] = {
    nn.Linear: Known(_linear_interval, _spectral_norm),
    WeightNorm: Known(_weight_norm_interval, _spectral_norm),
    Conv: Known(_linear_interval, _conv_norm),
    nn.Conv1d: Known(_linear_interval, _conv_norm),
    nn.Conv2d: Known(_linear_interval, _conv_norm),
    nn.Identity: Known(_rising, _constant(1.0)),
    nn.ReLU: Known(_rising, _constant(1.0)),
    nn.LeakyReLU: Known(_turns_at(0.0), _leaky_length),
    nn.ELU: Known(_turns_at(0.0), _elu_length),
    nn.SELU: Known(_rising, _constant(1.758099341)),
    nn.Sigmoid: Known(_rising, _constant(0.25)),
    nn.Tanh: Known(_rising, _constant(1.0)),
    nn.Softplus: Known(_softplus_interval, _softplus_length),
    nn.Softsign: Known(_rising, _constant(1.0)),
    Erf: Known(_rising, _constant(2 / math.sqrt(math.pi))),
    nn.GELU: Known(_gelu_interval, _constant(1.12904)),
    nn.SiLU: Known(_turns_at(-1.2784645428), _constant(1.09984)),
    nn.Mish: Known(_turns_at(-1.1924312145), _constant(1.0885)),
    nn.Flatten: Known(_rising, _constant(1.0)),
    Flatten: Known(_rising, _constant(1.0)),
    nn.Unflatten: Known(_rising, _constant(1.0)),
    nn.Dropout: Known(_rising, _constant(1.0)),
    Dropout: Known(_rising, _constant(1.0)),
    nn.MaxPool1d: Known(_rising, _max_pool_length),
    nn.MaxPool2d: Known(_rising, _max_pool_length),
    nn.AvgPool1d: Known(_scaled_interval, _mean_pool_length),
    nn.AvgPool2d: Known(_scaled_interval, _mean_pool_length),
    Downsample: Known(_rising, _downsample_length),
    PositionMean: Known(_rising, _mean_length),
    Standardise: Known(_rising, _standard_length),
    BatchNorm: Known(_batch_norm_interval, _batch_norm_length),
    nn.BatchNorm1d: Known(_batch_norm_interval, _batch_norm_length),
    nn.BatchNorm2d: Known(_batch_norm_interval, _batch_norm_length),
    ChannelNorm: Known(_batch_norm_interval, _batch_norm_length),
    Scaled: Known(_scaled_interval, _scaled_length),
}
"""Every layer whose bounds are known. A layer of your own joins by an entry."""


def head_of(chain: list[nn.Module], labels: int) -> tuple[list[nn.Module], Tensor, Tensor]:
    """The layers before the last linear one, and W, b of the logits (classes, …): differences of them are exact.

    One logit, that of the second of two classes, is beside a 0 for the first.
    """
    body = list(chain)
    scaled: Any = body.pop() if body and isinstance(body[-1], Scaled) else None
    if not body or type(body[-1]) is not nn.Linear:
        last = type(body[-1]).__name__ if body else "nothing"
        raise SpecError(f"Bounds are known for networks that end with a linear layer; this one ends with {last}.")
    linear: Any = body.pop()
    weight, bias = linear.weight, linear.bias
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    if scaled is not None:
        weight, bias = weight * scaled.unit.reshape(-1, 1), bias * scaled.unit.reshape(-1) + scaled.offset.reshape(-1)
    if len(weight) == 1 and labels == 2:
        weight, bias = functional.pad(weight, (0, 0, 1, 0)), functional.pad(bias, (1, 0))
    if len(weight) != labels:
        raise SpecError(f"Bounds are known for {labels} logits of {labels} classes; the network gives {len(weight)}.")
    return body, weight, bias
