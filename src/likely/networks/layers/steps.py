"""Steps of sequences: read alike from a tensor and from sequences of any lengths, and given back in the same form.

A network over steps starts with `steps_of`, which gives (n, t, d) and which steps there are, and ends with `at_each`
(one answer per step) or with `pooled` (one answer per sequence). What follows the end of a sequence never changes an
answer.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ...core.errors import DataError, SpecError
from ...data.rows import Inputs, Ragged, Rows

__all__ = [
    "Embedding",
    "at_each",
    "check_tokens",
    "one_step",
    "pooled",
    "refuse_steps",
    "step_features",
    "steps_of",
]


def step_features(in_shape: tuple[int, ...]) -> int:
    """Features of one step for rows of this shape: (t, d) has d, and (t,) has the one number itself.

    >>> step_features((10, 3)), step_features((10,))
    (3, 1)
    """
    return in_shape[-1] if len(in_shape) > 1 else 1


def steps_of(x: Inputs, *, tokens: bool = False) -> tuple[Tensor, Tensor | None]:
    """Steps (n, t, d), or token numbers (n, t) or (n, t, k), and which steps there are: (n, t), or None for all.

    >>> steps_of(torch.zeros(2, 5))[0].shape
    torch.Size([2, 5, 1])
    >>> steps, present = steps_of(Ragged.of([[1, 2, 3], [4]]), tokens=True)
    >>> steps.tolist(), present.sum(1).tolist()
    ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    if isinstance(x, Ragged):
        steps, present = x.padded()
    elif isinstance(x, Rows):
        raise TypeError(f"it takes sequences, and these are {x.kind}s")
    else:
        steps, present = x, None
    wanted = 2 if tokens else 3
    if steps.ndim == 2 and wanted == 3:
        steps = steps.unsqueeze(-1)
    if steps.ndim != wanted and not (tokens and steps.ndim == 3):
        form = "token numbers (n, steps)" if tokens else "steps (n, steps, features)"
        raise ValueError(f"it takes {form}; found shape {tuple(steps.shape)}")
    return steps, present


def one_step(x: Tensor, *, tokens: bool = False) -> Tensor:
    """What is given at one step: features (n, d), single numbers (n,) as (n, 1), or token numbers (n,).

    >>> one_step(torch.zeros(4)).shape, one_step(torch.zeros(4, 3)).shape, one_step(torch.zeros(4), tokens=True).shape
    (torch.Size([4, 1]), torch.Size([4, 3]), torch.Size([4]))
    """
    x = x.unsqueeze(-1) if x.ndim == 1 and not tokens else x
    if x.ndim != (1 if tokens else 2):
        form = "token numbers (n,)" if tokens else "features (n, d)"
        raise ValueError(f"a step is {form}; found shape {tuple(x.shape)}")
    return x


def refuse_steps(output: str) -> None:
    """Say why a network whose answer is of all steps together cannot be asked step by step.

    >>> refuse_steps("mean")
    Traceback (most recent call last):
    likely.core.errors.SpecError: step answers for the steps so far: it needs output="last" or "each"; found "mean".
    """
    if output not in ("last", "each"):
        raise SpecError(f'step answers for the steps so far: it needs output="last" or "each"; found "{output}".')


def at_each(x: Inputs, out: Tensor) -> Tensor:
    """Answers for all steps (n, t, …) in the form of x: as they are, or one sequence after the other."""
    return x.flat(out) if isinstance(x, Ragged) else out


def pooled(out: Tensor, present: Tensor | None, how: Literal["last", "mean", "max", "sum"]) -> Tensor:
    """One answer for each sequence from those of its steps: (n, t, d) → (n, d).

    >>> out = torch.tensor([[[1.0], [5.0]], [[2.0], [9.0]]])
    >>> pooled(out, torch.tensor([[True, True], [True, False]]), "mean").ravel().tolist()
    [3.0, 2.0]
    """
    if how == "last":
        if present is None:
            return out[:, -1]
        last = (present.sum(1) - 1).view(-1, 1, 1).expand(-1, 1, out.shape[-1])
        return out.gather(1, last).squeeze(1)
    if present is None:
        return {"mean": out.mean(1), "sum": out.sum(1)}[how] if how != "max" else out.amax(1)
    there = present.unsqueeze(-1)
    if how == "max":
        return out.masked_fill(~there, -torch.inf).amax(1)
    total = torch.where(there, out, 0.0).sum(1)
    return total if how == "sum" else total / there.sum(1)


class Embedding(nn.Module):
    """A vector for each token: numbers 0 … tokens − 1, of any dtype, (…) → (…, width).

    Of several tokens at each step, (n, steps, k), it is the sum of their vectors, over √k: (n, steps, width).

    >>> Embedding(5, 3)(torch.tensor([[0.0, 4.0]])).shape
    torch.Size([1, 2, 3])
    """

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(tokens, width) * width**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        vectors = nn.functional.embedding(x.long(), self.weight)
        return vectors if x.ndim < 3 else vectors.sum(-2) * x.shape[-1] ** -0.5


def check_tokens(x: Inputs, tokens: int) -> None:
    """Refuse numbers that are not tokens, naming the first."""
    values = x.features if isinstance(x, Rows) else x
    bad = (values < 0) | (values >= tokens) | (values != values.floor() if values.is_floating_point() else False)
    if bool(bad.any()):
        position = bad.nonzero()[0].tolist()
        if isinstance(x, Rows):
            row = int(torch.searchsorted(x.offsets, position[0], right=True)) - 1
            where = f"X[{row}], step {position[0] - int(x.offsets[row])}"
        else:
            where = f"row {position[0]}" + (f", step {position[1]}" if len(position) > 1 else "")
        token = values[tuple(position)].item()
        raise DataError(f"X has the token {token:g} at {where}; with tokens={tokens} they are 0 … {tokens - 1}.")
