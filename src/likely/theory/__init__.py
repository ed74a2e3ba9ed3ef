"""What can be proved of learning, and measured beside the proof.

bounds     how far the error on new rows can be from the error seen: Hoeffding, Vapnik-Chervonenkis, PAC-Bayes
tangent    networks near their start: linearised, their training as the flow of a kernel, how far the kernel moves
"""

from __future__ import annotations

from .bounds import (
    binary_kl,
    hoeffding_bound,
    kl_inverse,
    pac_bayes_bound,
    sample_size,
    sauer,
    vc_bound,
    vc_dimension,
)
from .tangent import gradient_flow, kernel_drift, linearise

__all__ = [
    "binary_kl",
    "gradient_flow",
    "hoeffding_bound",
    "kernel_drift",
    "kl_inverse",
    "linearise",
    "pac_bayes_bound",
    "sample_size",
    "sauer",
    "vc_bound",
    "vc_dimension",
]
