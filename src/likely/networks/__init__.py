"""Networks: the function x → η. Each is a spec that builds a plain `torch.nn.Module`."""

from __future__ import annotations

from ..core.room import open_room
from .base import Network, as_network
from .linear import Linear
from .mlp import MLP

__all__ = ["MLP", "Linear", "Network", "as_network"]

open_room(__name__, Network)
