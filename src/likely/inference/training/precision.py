"""bfloat16: products in 16 bits, eight of them exponent, where the processor has units for them.

Weights, their gradients, the optimiser and the likelihood stay in float32 (master weights); what a network computes in
between is rounded to 8 bits of mantissa, as torch's autocast decides layer by layer. Images are laid out with channels
last, as the kernels for 16 bits want them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning

__all__ = ["Half", "has_bfloat16"]


def has_bfloat16(device: torch.device) -> bool:
    """Whether products in bfloat16 are faster than in float32 on this device.

    >>> has_bfloat16(torch.device("cpu")) in (True, False)
    True
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported", "_is_arm_sve_bf16_supported")
    questions = [getattr(torch.cpu, name, None) for name in names]
    return device.type == "cpu" and any(question is not None and question() for question in questions)


class Half:
    """Runs a module in bfloat16; None instead of one (by `on`) means float32."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @staticmethod
    def on(device: torch.device, precision: str) -> Half | None:
        """What runs modules in this precision on this device: float32, with a warning, where that is all it has."""
        if precision == "float32":
            return None
        if not has_bfloat16(device):
            warnings.warn(
                'precision="bfloat16": this processor has no units for it and would be slower than in float32, so '
                "the fit is in float32.",
                ApproximationWarning,
                stacklevel=2,
            )
            return None
        return Half(device)

    def inputs(self, inputs: Sequence[Any]) -> list[Any]:
        """Images (b, channels, height, width) with their channels last in memory."""
        images = [isinstance(part, Tensor) and part.ndim == 4 for part in inputs]
        last = torch.channels_last
        return [x.contiguous(memory_format=last) if image else x for x, image in zip(inputs, images, strict=True)]

    def running(self) -> torch.autocast:
        """Inside, products are in bfloat16."""
        return torch.autocast(self.device.type, torch.bfloat16)
