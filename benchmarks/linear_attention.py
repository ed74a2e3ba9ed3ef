"""Linear attention against softmax attention, forward and backward at length 4,096, and its memory from 2,048 on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from likely.networks.layers.attention import MultiHeadAttention
from likely.networks.layers.linear_attention import LinearAttention, elu_plus_one

from .timing import Result, compare, interleave, show

__all__ = ["run"]

LENGTH, WIDTH, HEADS = 4096, 64, 4
PEER = "softmax, torch's fused kernel"


def run(repeats: int = 3) -> list[Result]:
    torch.manual_seed(0)
    x = torch.randn(1, LENGTH, WIDTH)
    linear, softmax = LinearAttention(WIDTH, HEADS), MultiHeadAttention(WIDTH, HEADS)
    results = []
    for causal, name in ((False, "linear attention"), (True, "linear attention, causal")):
        calls = {"likely": _step(linear, x, causal), PEER: _step(softmax, x, causal)}
        with torch.no_grad():
            gap = float((linear(x, causal=causal) - _with_all_pairs(linear, x, causal)).abs().max())

        def quality(ours: float, theirs: float, gap: float = gap) -> tuple[str, bool]:
            return f"largest difference from its quadratic form {gap:.1e}", gap < 1e-5

        timed = interleave(calls, repeats)
        results += compare(f"{name}, length {LENGTH:,}", timed, quality, {PEER: 0.25})
        memory = [_kept(linear, torch.randn(1, steps, WIDTH), causal) for steps in (LENGTH, LENGTH // 2)]
        words = "tensors kept for the backward pass"
        label = f"memory of {name}, length {LENGTH:,}"
        results.append(Result(label, f"length {LENGTH // 2:,}", *memory, words, True, 2.3, "MB"))
    return results


def _step(attention: nn.Module, x: Tensor, causal: bool) -> Callable[[], float]:
    def step() -> float:
        attention.zero_grad()
        loss = attention(x, causal=causal).square().mean()
        loss.backward()
        return float(loss.detach())

    return step


def _with_all_pairs(attention: LinearAttention, x: Tensor, causal: bool) -> Tensor:
    query, key, value = attention.projections.split(x, x)
    scores = elu_plus_one(query) @ elu_plus_one(key).mT
    scores = scores.tril() if causal else scores
    return attention.projections.merge(scores @ value / scores.sum(-1, keepdim=True))


def _kept(attention: nn.Module, x: Tensor, causal: bool) -> float:
    """Megabytes of all tensors that autograd keeps from the forward pass."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        out = attention(x, causal=causal)
        return sum(sizes.values()) / 1e6 if out.requires_grad else 0.0


if __name__ == "__main__":
    show(run())
