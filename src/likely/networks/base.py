"""What a network is: the function x → η with parameters θ. A spec that builds a plain `torch.nn.Module`."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.spec import Spec, as_spec
from ..data.rows import Inputs
from .adopted import adopted
from .condition import Conditioned, condition_width
from .layers.steps import Embedding, check_tokens, step_features

__all__ = ["Network", "as_network", "refuse_absurd", "refuse_large"]

Shape = tuple[int, ...]

CHANNELS = 64
"""Of a map of features, where a user's function builds the network that gives it."""
MOST_WEIGHTS = 10**8
MOST_LAYERS = 2_000
MOST_ACTIVATIONS = 10**9
"""What a spec may ask for: beyond these, it is a typo or a malicious file."""


class Network(Spec, axis="network"):
    """Builds the module that maps a batch (n, *in_shape) to η, (n, out_features) or (n, *positions, out_features)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth > MOST_LAYERS:  # by arithmetic: to build them would take minutes
            name = type(self).__name__
            raise SpecError(f"{name} would have {self.depth:,} layers; it must keep them at {MOST_LAYERS:,} or fewer.")

    @property
    def depth(self) -> int:
        """How many layers are stacked: the widths that its tuples list, `layers`, and `blocks` of each.

        >>> from likely.networks import MLP, ResNet, LSTM
        >>> MLP((64, 64)).depth, ResNet((16, 32, 64), blocks=2).depth, LSTM(layers=3).depth
        (2, 6, 3)
        """
        widths = [getattr(self, name, ()) for name in ("hidden", "after", "channels")]
        listed = sum(len(value) for value in widths if isinstance(value, tuple))
        return (listed + int(getattr(self, "layers", 0))) * int(getattr(self, "blocks", 1))

    def build(self, in_shape: tuple[int, ...], out_features: int) -> nn.Module:
        """A new module with new random parameters."""
        raise NotImplementedError(f"{type(self).__name__} must implement build()")

    def body(self, in_shape: Shape) -> nn.Module:
        """A new module from images (n, *in_shape) to a map of features (n, channels, height, width), of smaller sides.

        >>> from likely.networks import ResNet
        >>> ResNet((8, 16), blocks=1).body((3, 32, 32))(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 16, 16, 16])
        """
        raise SpecError(f"{type(self).__name__} gives no map of features of an image; ConvNet, ResNet, UNet or ViT do.")

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        """The shape of a row with an axis of its own for the features of a position, and which axis that is."""
        return in_shape, -1

    def conditioned(self, in_shape: Shape, out_features: int, condition: Shape) -> nn.Module:
        """The module for x and a condition: one for x alone with more features, see `networks.condition`."""
        tokens = getattr(self, "tokens", None)
        if tokens is not None:
            width = int(getattr(self, "width", 0) or getattr(self, "hidden", 0))
            wide = self.replace(tokens=None).build((*in_shape, width + math.prod(condition)), out_features)
            return Conditioned(wide, (*in_shape, width), -1, Embedding(tokens, width))
        shape, axis = self.features_at(in_shape)
        more, index = condition_width(condition, shape, axis), axis % len(shape)
        widened = (*shape[:index], shape[index] + more, *shape[index + 1 :])
        return Conditioned(self.build(widened, out_features), shape, axis)

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        """What the inputs are standardised by: a shape that broadcasts against rows, with 1 along what is alike.

        Columns of a table, features of a step, channels of an image. A network that reads rows otherwise says so.

        >>> Network().columns((5,)), Network().columns((20, 3)), Network().columns((3, 32, 32))
        ((5,), (3,), (3, 1, 1))
        """
        return in_shape[-1:] if len(in_shape) < 3 else (in_shape[0], *(1 for _ in in_shape[1:]))

    @property
    def any_length(self) -> bool:
        """Whether rows are sequences or sets that may be shorter or longer than those the module was built for."""
        return False

    @property
    def any_size(self) -> bool:
        """Whether rows are images or series that may be larger or smaller than those the module was built for."""
        return False

    def out_lengths(self, lengths: Tensor) -> Tensor | None:
        """At how many positions it answers for rows with so many, (n,) → (n,); None: at as many, or once per row.

        A module of one's own, or a function that builds one, says so by a method `out_lengths(lengths)`: a convolution
        of stride 2 halves them. Targets of ragged rows then have those lengths.
        """
        return None

    def reading(self, tokens: int) -> Network | None:
        """The same network over rows of the numbers 0 … tokens − 1, which stand for tokens; None if it takes vectors.

        >>> from likely.networks import LSTM, MLP
        >>> LSTM().reading(5), MLP().reading(5)
        (LSTM(tokens=5), None)
        """
        if not hasattr(self, "tokens"):
            return None
        if self.tokens is None:
            return self.replace(tokens=tokens)
        return self

    def check(self, x: Inputs) -> None:
        """Raise a `DataError` for rows that the shape allows and the network does not, such as unknown tokens."""

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        """X that the example can be fitted on: rows of three numbers."""
        return torch.randn(rows, 3, generator=generator).numpy()


class _StepNetwork(Network):
    """A network over the steps of sequences (or elements of sets) of any length: (t, d), or (t,) of single numbers."""

    @property
    def any_length(self) -> bool:
        return True

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return ((*in_shape, 1) if len(in_shape) == 1 else in_shape), -1

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return (step_features(in_shape),)

    def check(self, x: Inputs) -> None:
        tokens = getattr(self, "tokens", None)
        if tokens is not None:
            check_tokens(x, tokens)


def refuse_absurd(network: Network, weights: int, most: int = MOST_WEIGHTS) -> None:
    """A typo should not fill the memory.

    >>> refuse_absurd(Network(), 10**9)
    Traceback (most recent call last):
    likely.core.errors.SpecError: Network() would have 1,000,000,000 weights; it must keep them at 100,000,000 or fewer.
    """
    if weights > most:
        raise SpecError(f"{network!r} would have {weights:,} weights; it must keep them at {most:,} or fewer.")


def refuse_large(network: Network, numbers: int) -> None:
    """What a network makes of one row must fit into memory.

    >>> refuse_large(Network(), 10**12)
    Traceback (most recent call last):
    likely.core.errors.SpecError: Network() would hold 1e+12 numbers for each row; it must be at most 1e+09.
    """
    if numbers > MOST_ACTIVATIONS:
        most = f"{MOST_ACTIVATIONS:.0e}"
        raise SpecError(f"{network!r} would hold {float(numbers):.0e} numbers for each row; it must be at most {most}.")


class _Module(Network):
    """A user's own `nn.Module` as a network."""

    module: nn.Module

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        """A copy; its layers with `reset_parameters` start anew, so that members of an ensemble differ.

        Layers whose parameters are all frozen (`requires_grad=False`) keep their weights. A condition is handed to the
        module's own `forward(x, condition)`.
        """
        fresh = copy.deepcopy(self.module)
        for layer in fresh.modules():
            reset = getattr(layer, "reset_parameters", None)
            own = list(layer.parameters(recurse=False))
            if callable(reset) and (not own or any(parameter.requires_grad for parameter in own)):
                reset()
        return adopted(fresh)

    def body(self, in_shape: Shape) -> nn.Module:
        """The module as it is."""
        return self.build(in_shape, 0)

    def reading(self, tokens: int) -> Network:
        """The module as it is: it has to know the tokens."""
        return self

    def out_lengths(self, lengths: Tensor) -> Tensor | None:
        """As the module says."""
        return _told_lengths(self.module, lengths)


class _Builder(Network):
    """A user's function `build(in_shape, out_features)` that returns an `nn.Module`."""

    function: Callable[..., nn.Module]

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        """A copy of what the function returns: it may give one and the same module every time."""
        told = () if condition is None else (condition,)
        if told and len(inspect.signature(self.function).parameters) < 3:
            raise SpecError("network: for a condition, the function must take (in_shape, out_features, condition).")
        module = self.function(in_shape, out_features, *told)
        if not isinstance(module, nn.Module):
            returned = type(module).__name__
            raise SpecError(f"network: the function must return a torch.nn.Module; it returned a {returned}.")
        return adopted(copy.deepcopy(module))

    def body(self, in_shape: Shape) -> nn.Module:
        """What the function gives for `CHANNELS` numbers, which is to be a map of so many channels."""
        return self.build(in_shape, CHANNELS)

    def reading(self, tokens: int) -> Network:
        """The function as it is: it has to know the tokens."""
        return self

    def out_lengths(self, lengths: Tensor) -> Tensor | None:
        """As the function says, where it has an attribute of this name."""
        return _told_lengths(self.function, lengths)


def _told_lengths(owner: Any, lengths: Tensor) -> Tensor | None:
    """What a user's `out_lengths` gives, once it is seen to be numbers of positions."""
    rule = getattr(owner, "out_lengths", None)
    if rule is None:
        return None
    told = rule(lengths)
    counts = isinstance(told, Tensor) and not told.is_floating_point() and told.shape == lengths.shape
    if not counts or bool((told < 0).any()):
        shown = f"{told.dtype} of shape {tuple(told.shape)}" if isinstance(told, Tensor) else type(told).__name__
        raise SpecError(
            f"network: out_lengths must give an integer ≥ 0 for each of {len(lengths)} lengths; it gave {shown}."
        )
    return told


def as_network(value: Any) -> Network:
    """A network from a spec, text, an `nn.Module`, or a function that builds one.

    A module is copied, never changed, and its layers start anew, except frozen ones. To start from the weights it has,
    give a function that returns it: `network=lambda in_shape, out_features: copy.deepcopy(module)`.

    >>> as_network(lambda in_shape, out_features: nn.Linear(in_shape[-1], out_features)).build((3,), 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if isinstance(value, nn.Module):
        return _Module(value)
    if callable(value) and not isinstance(value, Spec | type):
        return _Builder(value)
    if isinstance(value, type) and issubclass(value, nn.Module):
        name = value.__name__
        raise SpecError(
            f"network={name} is a class; give a module, {name}(…), or a function (in_shape, out_features) → module."
        )
    return as_spec(value, Network, "network")
