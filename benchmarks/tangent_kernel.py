"""The empirical tangent kernel of a dense network of 3 layers on 500 rows, against a gradient for each row."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from likely.kernels.tangent import tangent_kernel

from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, WIDTH, INPUTS = 500, 256, 64


def run(repeats: int = 3) -> list[Result]:
    torch.manual_seed(0)
    layers = [nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)]
    net, x = nn.Sequential(*layers), torch.randn(ROWS, INPUTS)
    parameters = list(net.parameters())

    def by_rows() -> np.ndarray:
        rows = [torch.autograd.grad(net(row.unsqueeze(0)).sum(), parameters) for row in x]
        jacobian = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
        return (jacobian @ jacobian.T).numpy()

    calls = {"likely": lambda: tangent_kernel(net, x).numpy(), "autograd.grad row by row": by_rows}
    timed = interleave(calls, repeats)

    def quality(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, bool]:
        gap = float(abs(ours - theirs).max() / abs(theirs).max())
        return f"largest difference {gap:.1e} of the largest entry", gap < 1e-5

    targets = {"autograd.grad row by row": 1 / 3}
    return compare(f"tangent kernel, {ROWS} rows, 3 layers", timed, quality, targets)


if __name__ == "__main__":
    show(run())
