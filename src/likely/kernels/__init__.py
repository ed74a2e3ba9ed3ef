"""Covariance functions k(x, x′): specs that add and multiply, with hyperparameters that are learned."""

from __future__ import annotations

from ..core.room import open_room
from .algebra import Product, Scaled, Sum
from .base import Kernel, KernelModule
from .constant import Constant, White
from .dot_product import Linear, Polynomial
from .network import NNGP, NTK
from .periodic import Periodic
from .stationary import RBF, Matern, RationalQuadratic

__all__ = [
    "NNGP",
    "NTK",
    "RBF",
    "Constant",
    "Kernel",
    "KernelModule",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sum",
    "White",
]

open_room(__name__, Kernel)
