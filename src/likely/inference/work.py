"""How much an inference does at a time, which decides how many threads it gets (`likely.core.threads`)."""

from __future__ import annotations

from typing import Any

__all__ = ["rows_per_step"]


def rows_per_step(inference: Any, rows: int) -> int:
    """Rows, over all members or chains, that one operation of an inference sees: a batch, or all of them.

    >>> from likely.inference import HMC, MAP, Ensemble
    >>> [rows_per_step(spec, 1000) for spec in (MAP(batch_size=32), Ensemble(5, by=MAP(batch_size=32)), HMC(chains=4))]
    [32, 160, 4000]
    """
    copies, spec = 1, inference
    while spec is not None:
        copies *= getattr(spec, "members", 1) * getattr(spec, "chains", 1)
        rows = min(rows, getattr(spec, "batch_size", None) or rows)
        spec = getattr(spec, "by", None)
    return copies * rows
