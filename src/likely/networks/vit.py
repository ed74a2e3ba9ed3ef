"""ViT: the vision transformer. An image is cut into patches, and these are the steps of a transformer.

x_t = V·patch_t + position_t,   then a transformer with a class token
"""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.spec import is_integer, require
from .base import Network, Shape, refuse_absurd
from .layers.attention import divisors
from .layers.encoder import Encoder
from .transformer import MOST_WEIGHTS, affine, check_encoder, encoder_weights

__all__ = ["PatchMap", "PatchTransformer", "Patches", "ViT"]


class ViT(Network):
    """A transformer of images (c, h, w), or of signals (c, t), cut into squares of `patch` × `patch` pixels.

    `patch` divides both sides. Each patch becomes a vector of `width` numbers by one linear map, plus a position that
    is learned; blocks have norms first ("pre") unless `norm="post"`. η is read from a class token, or from the "mean"
    of all patches. `hidden` (4·width), `dropout` and `activation` are those of `Transformer`.

    >>> ViT(patch=2, width=8, heads=2, layers=1).build((1, 6, 6), 10)(torch.zeros(5, 1, 6, 6)).shape
    torch.Size([5, 10])
    """

    patch: int = 4
    width: int = 64
    heads: int = 4
    layers: int = 4
    hidden: int | None = None
    norm: Literal["pre", "post"] = "pre"
    output: Literal["class", "mean"] = "class"
    dropout: float = 0.0
    activation: str = "gelu"

    @classmethod
    def example(cls) -> Self:
        return cls(patch=3, width=4, heads=2, layers=1, hidden=4)

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        """Small images with one channel."""
        return torch.randn(rows, 1, 6, 6, generator=generator).numpy()

    def validate(self) -> None:
        require(is_integer(self.patch), self, "patch", "a positive integer")
        check_encoder(self)

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return ((1, *in_shape) if len(in_shape) == 2 else in_shape), 0

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*in_shape[:-2], 1, 1)

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        if len(in_shape) not in (2, 3) or min(in_shape) < 1 or out_features < 1:
            raise SpecError(
                f"ViT takes images (channels, height, width) or signals (channels, steps), and one output or more; "
                f"found {in_shape} and {out_features}."
            )
        self._refuse_size(in_shape[1:])
        patches = Patches(self.patch)
        count, size = patches.shape(in_shape)
        refuse_absurd(self, encoder_weights(self, count + size + out_features), MOST_WEIGHTS)
        encoder = Encoder(
            self.width,
            self.heads,
            self.layers,
            longest=count,
            hidden=self.hidden,
            norm=self.norm,
            output=self.output,
            dropout=self.dropout,
            activation=self.activation,
        )
        return PatchTransformer(patches, affine(size, self.width), encoder, affine(self.width, out_features))

    def body(self, in_shape: Shape) -> nn.Module:
        """A feature for each patch."""
        net = self.replace(output="mean").build(in_shape, 1)
        assert isinstance(net, PatchTransformer)
        net.encoder.output = "each"
        sides = tuple(side // self.patch for side in in_shape[1:])
        return nn.Sequential(net.patches, net.embed, net.encoder, PatchMap(sides))

    def _refuse_size(self, sides: tuple[int, ...]) -> None:
        if any(side % self.patch for side in sides):
            size = " × ".join(map(str, sides))
            larger = " × ".join(str(-(-side // self.patch) * self.patch) for side in sides)
            raise SpecError(
                f"ViT(patch={self.patch}) cannot cut {size} into whole patches; {divisors(*sides)} would do, or rows "
                f"of {larger}."
            )


class Patches(nn.Module):
    """Cuts (n, c, h, w) or (n, c, t) into patches of all channels: (n, patches, c·patch²) or (n, patches, c·patch).

    >>> Patches(2)(torch.arange(16.0).view(1, 1, 4, 4))[0, 0].tolist()
    [0.0, 1.0, 4.0, 5.0]
    """

    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch

    def shape(self, in_shape: tuple[int, ...]) -> tuple[int, int]:
        """How many patches a row of this shape has, and how many numbers each."""
        count = 1
        for side in in_shape[1:]:
            count *= side // self.patch
        return count, in_shape[0] * self.patch ** (len(in_shape) - 1)

    def forward(self, x: Tensor) -> Tensor:
        count, size = self.shape(tuple(x.shape[1:]))
        for axis in range(x.ndim - 2):  # (n, c, h, w) → (n, c, h/p, p, w/p, p)
            x = x.unflatten(2 + 2 * axis, (-1, self.patch))
        grid, inner = range(2, x.ndim, 2), range(3, x.ndim, 2)
        return x.permute(0, *grid, 1, *inner).reshape(len(x), count, size)

    def extra_repr(self) -> str:
        """The side of a patch."""
        return f"patch={self.patch}"


class PatchMap(nn.Module):
    """(n, patches, width) → (n, width, rows, columns): what is known of each patch, where it lies in the image.

    >>> PatchMap((2, 3))(torch.zeros(5, 6, 8)).shape
    torch.Size([5, 8, 2, 3])
    """

    def __init__(self, sides: tuple[int, ...]) -> None:
        super().__init__()
        self.sides = sides

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).unflatten(2, self.sides)


class PatchTransformer(nn.Module):
    """Patches, a linear map of each, an `Encoder`, and a linear map to η.

    >>> net = PatchTransformer(Patches(2), nn.Linear(4, 8), Encoder(8, 2, 1, longest=9), nn.Linear(8, 3))
    >>> net(torch.zeros(5, 1, 6, 6)).shape
    torch.Size([5, 3])
    """

    def __init__(self, patches: Patches, embed: nn.Module, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.patches, self.embed, self.encoder, self.head = patches, embed, encoder, head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.embed(self.patches(x))))
