"""The layers of flows: invertible maps with their log-determinants, and the specs that a person chooses them by."""

from __future__ import annotations

from .affine import Affine
from .autoregressive import Autoregression
from .base import Transform
from .bijection import Bijection, Chain
from .continuous import Continuous, VelocityField
from .coupling import Coupling
from .image import ChannelsLast, Squeeze
from .mixing import LinearMap, Permutation
from .planar import Planar, PlanarMap
from .radial import Radial, RadialMap
from .spline import Spline
from .stack import stack
from .units import Units

__all__ = [
    "Affine",
    "Autoregression",
    "Bijection",
    "Chain",
    "ChannelsLast",
    "Continuous",
    "Coupling",
    "LinearMap",
    "Permutation",
    "Planar",
    "PlanarMap",
    "Radial",
    "RadialMap",
    "Spline",
    "Squeeze",
    "Transform",
    "Units",
    "VelocityField",
    "stack",
]
