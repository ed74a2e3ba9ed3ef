"""Steps of a causal encoder without a graph, by one compiled loop over its blocks.

Keys and values are written into room that was made ahead, which doubles when it is full. States stay values: one that
was left behind, because a step was taken from it before, moves to room of its own when it is stepped on again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .attention import MultiHeadAttention
from .positions import join_positions

if TYPE_CHECKING:
    from .encoder import Encoder, EncoderBlock

__all__ = ["CompiledState", "compiled_start", "compiled_step"]

ROOM = 32
"""Steps that there is room for at first."""


class Blocks:
    """The weights of all blocks as the loop reads them, and how many steps were written to the room they share."""

    def __init__(self, encoder: Encoder, blocks: list[Any]) -> None:
        parts = [block.attention.projections for block in blocks]
        width = encoder.width
        ends = [(block.change[0], block.change[-1]) for block in blocks]
        affine = [(part.query, part.key_value, part.out, *end) for part, end in zip(parts, ends, strict=True)]
        self.norms = _stacked([_norms(block) for block in blocks])
        self.biases = _stacked([torch.cat([_bias(layer, layer.out_features) for layer in own]) for own in affine])
        self.joint = _stacked([torch.cat([part.query.weight, part.key_value.weight]) for part in parts])
        self.out = _stacked([part.out.weight for part in parts])
        self.inner, self.outer = (_stacked([end[place].weight for end in ends]) for place in (0, 1))
        first = blocks[0]
        self.heads, self.size = parts[0].heads, width // parts[0].heads
        self.scale = np.float32(self.size**-0.5 if first.attention.score == "scaled" else 1.0)
        self.eps, self.pre = np.float32(first.norms[0].eps), first.pre
        self.rectified = isinstance(first.change[1], nn.ReLU)
        self.written = 0

    def run(self, x: Tensor, at: int, keys: Tensor, values: Tensor) -> None:
        """Change x (n, width) in place, and write the keys and values of step `at`."""
        from .compiled.encoder_loop import step_blocks  # only where it is needed: numba loads slowly

        weights = (self.norms, self.biases, self.joint, self.out, self.inner, self.outer)
        options = (self.scale, self.eps, self.pre, self.rectified)
        step_blocks(x.numpy(), at, keys.numpy(), values.numpy(), *weights, *options)
        self.written = at + 1


class CompiledState(NamedTuple):
    """How many steps there were, and their keys and values, (n, layers, heads, room, size) each."""

    steps: int
    keys: Tensor
    values: Tensor
    blocks: Blocks

    def step(self, x: Tensor) -> tuple[Tensor, CompiledState]:
        """What the blocks make (n, width) of one more step (n, width), which is overwritten, and the state after it."""
        state = self
        room, left_behind = self.keys.shape[3], self.blocks.written != self.steps
        if self.steps == room or left_behind:
            state = self.moved(2 * room if self.steps == room else room)
        out = x.contiguous()
        state.blocks.run(out, state.steps, state.keys, state.values)
        return out, state._replace(steps=state.steps + 1)

    def moved(self, room: int) -> CompiledState:
        """The same in other memory, with room for so many steps."""
        shape = (*self.keys.shape[:3], room, self.keys.shape[4])
        keys, values = self.keys.new_empty(shape), self.values.new_empty(shape)
        for new, old in ((keys, self.keys), (values, self.values)):
            new[:, :, :, : self.steps] = old[:, :, :, : self.steps]
        blocks = Blocks.__new__(Blocks)
        blocks.__dict__.update(self.blocks.__dict__, written=self.steps)
        return CompiledState(self.steps, keys, values, blocks)


def compiled_start(encoder: Encoder, rows: int) -> CompiledState | None:
    """The initial state for `rows` sequences; None where the loop does not know the encoder."""
    blocks = list(encoder.blocks)
    if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active() or encoder.relative is not None:
        return None
    if not all(_known(block) for block in blocks):  # type: ignore[arg-type]
        return None
    made = Blocks(encoder, blocks)
    keys, values = torch.empty(2, rows, len(blocks), made.heads, ROOM, made.size)
    return CompiledState(0, keys, values, made)


def compiled_step(encoder: Encoder, x: Tensor, state: CompiledState) -> tuple[Tensor, CompiledState]:
    """What becomes (n, width) of one more step (n, in_features), and the state after it: as `Encoder.step`."""
    if encoder.positions is not None:
        here = encoder.positions(x.new_empty(1, state.steps + 1, 0))[-1:]
        x = join_positions(x.unsqueeze(1), here, encoder.join).squeeze(1)
    h, state = state.step(x)
    return encoder.norm(h), state


def _known(block: EncoderBlock) -> bool:
    """Whether a block is what the loop computes: in float32 on the processor, without dropout."""
    attention, change = block.attention, block.change
    plain = isinstance(attention, MultiHeadAttention) and attention.score in ("scaled", "dot")
    if not plain or (block.training and block.dropout.p) or getattr(block, "cross", None) is not None:
        return False
    affine = (attention.projections.query, attention.projections.key_value, attention.projections.out)
    if any(type(layer) is not nn.Linear for layer in (*affine, change[0], change[-1])):
        return False
    gelu = isinstance(change[1], nn.GELU) and change[1].approximate == "none"
    here = all(value.dtype == torch.float32 and value.device.type == "cpu" for value in block.parameters())
    return here and (gelu or isinstance(change[1], nn.ReLU))


def _bias(layer: Any, size: int) -> Tensor:
    return torch.zeros(size) if layer.bias is None else layer.bias


def _norms(block: EncoderBlock) -> Tensor:
    """Gain and shift of both norms, (2, 2, width)."""
    pairs = [[norm.weight, _bias(norm, len(norm.weight))] for norm in list(block.norms)[:2]]  # type: ignore[arg-type]
    return torch.stack([torch.stack(pair) for pair in pairs])  # type: ignore[arg-type]


def _stacked(parts: list[Tensor]) -> np.ndarray:
    """Tensors of all blocks as one array."""
    return torch.stack(parts).numpy()
