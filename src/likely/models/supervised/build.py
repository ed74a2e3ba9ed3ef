"""From the specs to the module: how a network's output becomes η of every target.

A network may give numbers for each position itself (a token, a pixel), or all numbers of a row at once. Which of the
two it does is seen by asking it, with two rows of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from ...core.errors import DataError, ModelFileError, SpecError
from ...core.random import isolated
from ...core.shapes import without_numbers
from ...core.threads import footprint
from ...data.rows import Rows
from ...inference.predictor import Predictor, is_linear
from ...likelihoods import Likelihood, Target
from ...networks import Network
from ...networks.layers.standardise import Standardise, Statistics
from ...networks.layers.steps import Embedding

__all__ = ["Plan", "Sample", "baseline", "plan"]

NETWORKS = {
    "sequence": "sequences use RNN, GRU, LSTM, LRU, Transformer or DeepSets",
    "graph": "graphs use GCN, ChebNet, GAT or MessagePassing",
    "sparse row": "bags of words and other sparse rows use Linear or MLP",
}
"""What to say to someone whose network takes tensors only."""
SAMPLE = 10_000
"""Rows that the baseline looks at: it is where training starts, not what it finds."""


@dataclass(frozen=True)
class Plan:
    """How to build the predictor: shapes only, so that a model file can hold it."""

    in_shape: tuple[int, ...]
    out_features: int
    positions: tuple[int, ...]
    """Positions that are unfolded from a flat output; empty where the network gives them itself."""
    flatten: bool
    shared: int
    linear: bool
    columns: tuple[int, ...] | None = None
    """What the inputs are standardised by, broadcast against a row; None where they are taken as they are."""
    integer: bool = False
    """Whether the network takes integers as they are."""
    footprint: tuple[int, ...] = field(default=(1, 1), compare=False)
    """What a row costs: the `core.threads.Footprint` of the network."""
    coupling: int = 0
    """Learned constants that couple the positions of a row, after η of each."""

    def predictor(
        self,
        network: Network,
        offset: Tensor,
        unit: Tensor | None,
        seed: int,
        inputs: Statistics | None = None,
    ) -> Predictor:
        """A new predictor with parameters drawn from this seed, starting at the baseline."""
        with isolated(seed):
            module = _built(network, self.in_shape, self.out_features)
        own = offset.shape[-1] - self.shared
        shared = offset[..., own:].clone() if self.shared else None
        if self.coupling:  # of the row as a whole, which starts as if its positions were independent
            shared = offset.new_zeros(self.coupling)
        offset, unit = offset[..., :own].clone(), None if unit is None else unit[..., :own].clone()
        if self.linear and isinstance(module, nn.Linear):
            if module.bias is not None:
                module.bias.data = offset.reshape(-1).to(module.bias)
            return Predictor(module, shared, None, None, self.positions, self.flatten)
        standard = None if inputs is None else Standardise(*inputs)
        return Predictor(module, shared, offset, unit, self.positions, self.flatten, standard, self.integer)

    def blank(self, network: Network, size: int, tensors: Container[str]) -> Predictor:
        """A predictor to be filled from a file with these tensors.

        It has shapes without memory, so that no file can make us allocate much.
        """
        unit = "buffers.unit" in tensors

        def empty() -> Predictor:
            offset = torch.zeros(*self.positions, size)
            inputs = None if self.columns is None else Statistics.blank(self.columns, tensors)
            made = self.predictor(network, offset, offset if unit else None, 0, inputs)
            return made.with_affine(self.in_shape[-1]) if "parameters.affine.weight" in tensors else made

        try:
            with without_numbers():
                return empty()
        except (RuntimeError, NotImplementedError):  # a network whose building needs real numbers
            return empty()

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """The inverse of `to_json`; a `ModelFileError` for what is not a plan."""
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        made = Plan(**values)
        counts = (made.out_features, made.shared, made.coupling, *(made.columns or ()), *made.footprint)
        flags = (made.flatten, made.linear, made.integer)
        sound = len(made.footprint) == 2 and all(type(flag) is bool for flag in flags)
        if not sound or not all(type(count) is int and count >= 0 for count in counts):
            raise ModelFileError(f"The file has a plan that is none: {made}.")
        return made


class Sample(NamedTuple):
    """Some `Rows` to ask a network about, and where the targets of each start, if it may have several."""

    x: Rows
    offsets: Tensor | None


def plan(
    network: Network,
    likelihood: Likelihood,
    target: Target,
    in_shape: tuple[int, ...],
    positions: tuple[int, ...],
    sample: Sample | None = None,
    integer: bool = False,
    coupling: int = 0,
) -> Plan:
    """Ask the network what it gives for two rows of zeros (or a sample), and fit targets of these positions to it.

    Where x holds integers (`integer`), it is first asked whether it takes them as they are.
    """
    shared = likelihood.shared(target)
    size = likelihood.size(target) - shared
    flat = size * math.prod(positions)
    attempts: list[tuple[tuple[int, ...], int, tuple[int, ...], bool]] = [(in_shape, size, (), False)]
    if positions:
        attempts.append((in_shape, flat, positions, False))
    if len(in_shape) > 1 and sample is None:
        attempts.append(((math.prod(in_shape),), flat, positions, True))
    shapes: list[tuple[int, ...]] = []
    refused: list[SpecError] = []
    for shape, out_features, unfolded, flatten in attempts:
        try:
            with isolated(0):
                module = _built(network, shape, out_features)
                taken = integer and _takes_integers(module, shape, sample)
                given = _output_shape(module, shape, sample, integer=taken, name=_name(network, module))
        except SpecError as error:
            refused.append(error)
            continue
        wanted = (flat,) if unfolded or flatten else (*positions, size)
        if given == wanted:
            if not shared + coupling and not any(p.requires_grad for p in module.parameters()):
                raise SpecError(f"network {type(module).__name__} has no parameters, so there is nothing to learn.")
            columns = network.columns(shape) if not taken and _standardises(module) else None
            costs = tuple(footprint(module.eval(), _some(module, shape, sample, integer=taken)))
            linear = is_linear(module)
            return Plan(shape, out_features, unfolded, flatten, shared, linear, columns, taken, costs, coupling)
        shapes.append(given)
    if not shapes:
        raise refused[0]
    if len(in_shape) == 3 and len(positions) == 2 and (*in_shape[1:], size) in shapes:  # an answer for each pixel
        masks, images = (" × ".join(map(str, sides)) for sides in (positions, in_shape[1:]))
        raise DataError(
            f"y has masks of {masks} pixels, but X has images of {images}; each pixel needs one target, so resize one "
            "of them."
        )
    raise SpecError(
        f"network gives outputs of shape {' or '.join(map(str, dict.fromkeys(shapes)))} for a row of shape {in_shape}, "
        f"where {likelihood!r} needs {(*positions, size)}, whose last axis holds the numbers of one target."
    )


def baseline(
    likelihood: Likelihood, y: Tensor, weight: Tensor | None, positions: tuple[int, ...], unfolded: bool
) -> tuple[Tensor, Tensor | None]:
    """Offset and unit of η without x: one for all positions, or (*positions, size) where they are unfolded.

    The unit is None where it is 1 throughout. A position with parameters of its own needs at least one target.
    """
    if unfolded and weight is not None:
        empty = (weight.sum(0) == 0).nonzero().tolist()
        if empty:
            place = empty[0][0] if len(positions) == 1 else tuple(empty[0])
            raise DataError(f"y has no target at position {place}: all are missing or without weight; leave it out.")
    offset, unit = _baseline(likelihood, y, weight, positions, unfolded)
    return offset, None if bool((unit == 1).all()) else unit


def _baseline(
    likelihood: Likelihood, y: Tensor, weight: Tensor | None, positions: tuple[int, ...], unfolded: bool
) -> tuple[Tensor, Tensor]:
    if weight is not None and not bool(weight.all()):
        counted = weight.reshape(len(weight), -1).any(1)
        y, weight = y[counted], weight[counted]
    step = max(1, len(y) // SAMPLE)
    targets = y[::step].double()
    weights = torch.ones(len(targets), *positions, dtype=torch.float64) if weight is None else weight[::step].double()
    event = targets.shape[1 + len(positions) :]
    if not unfolded or math.prod(positions) > SAMPLE:
        offset, unit = _of(likelihood, targets.reshape(-1, *event), weights.reshape(-1))
        if unfolded:
            offset, unit = offset.expand(*positions, -1), unit.expand(*positions, -1)
        return offset, unit
    columns = targets.reshape(len(targets), -1, *event).unbind(1)
    pairs = [_of(likelihood, t, w) for t, w in zip(columns, weights.reshape(len(weights), -1).unbind(1), strict=True)]
    offset, unit = (torch.stack(part).reshape(*positions, -1) for part in zip(*pairs, strict=True))
    return offset, unit


def _of(likelihood: Likelihood, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    counted = weight > 0
    if not bool(counted.any()):  # none among the rows looked at: start where all-equal placeholders would
        counted, weight = torch.ones_like(counted), torch.ones_like(weight)
    if bool(counted.all()):  # nothing to pick, which takes longer than all the rest
        return likelihood.baseline(y, weight)
    return likelihood.baseline(y[counted], weight[counted])


def _built(network: Network, in_shape: tuple[int, ...], out_features: int) -> nn.Module:
    module = network.build(in_shape, out_features)
    if any(isinstance(p, UninitializedParameter) for p in module.parameters()):
        _output_shape(module, in_shape, name=_name(network, module))
    return module


def _name(network: Network, module: nn.Module) -> str:
    """What a person calls it: the spec, not the class of ours that it builds; a module of their own by its class."""
    ours = type(module).__module__.startswith("likely.")
    return type(network if ours else module).__name__


def _standardises(module: nn.Module) -> bool:
    """Whether the inputs of this network are numbers in units: it is not linear, embeds nothing and learns anew.

    A network with frozen weights has learned from inputs as they are.
    """
    if is_linear(module) or any(isinstance(layer, nn.Embedding | Embedding) for layer in module.modules()):
        return False
    return all(parameter.requires_grad for parameter in module.parameters())


def _takes_integers(module: nn.Module, in_shape: tuple[int, ...], sample: Sample | None) -> bool:
    try:
        _output_shape(module, in_shape, sample, integer=True)
    except SpecError:
        return False
    return True


def _some(module: nn.Module, in_shape: tuple[int, ...], sample: Sample | None, *, integer: bool) -> Any:
    """Two rows of zeros, or the sample, where the module is."""
    like = next(module.parameters(), torch.empty(0))
    dtype = torch.long if integer else like.dtype
    if sample is not None:
        return sample.x.to(dtype).to(like.device)
    return torch.zeros(2, *in_shape, dtype=dtype, device=like.device)


@torch.no_grad()
def _output_shape(
    module: nn.Module,
    in_shape: tuple[int, ...],
    sample: Sample | None = None,
    integer: bool = False,
    name: str | None = None,
) -> tuple[int, ...]:
    training = module.training
    module.eval()
    x = _some(module, in_shape, sample, integer=integer)
    try:
        out = module(x)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError, AttributeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        name = name or type(module).__name__
        if sample is not None:
            plain = isinstance(error, TypeError | AttributeError) and "Tensor" in reason
            reason = f"it takes rows of one shape; for {NETWORKS[sample.x.kind]}" if plain else reason
            raise SpecError(f"network {name} cannot take {sample.x.kind}s as rows: {reason}.") from error
        raise SpecError(f"network {name} cannot take rows of shape {in_shape}: {reason}") from error
    finally:
        module.train(training)
    at_positions = sample is not None and sample.offsets is not None
    count = int(sample.offsets[-1]) if sample is not None and sample.offsets is not None else len(x)
    if not isinstance(out, Tensor) or out.ndim < 1 or out.shape[0] != count:
        given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        what = "position" if at_positions else "row"
        raise SpecError(
            f"network must give a tensor with one entry for each {what}; for {count} {what}s it gave {given}."
        )
    return tuple(out.shape[1:])
