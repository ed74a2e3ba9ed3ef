"""RNN: the plain recurrent network.

h_t = φ(W x_t + U h_{t−1} + b),   η = V h + c
"""

from __future__ import annotations

from typing import Literal

from ..core.spec import require
from .layers.recurrent import RecurrentLayer, RNNLayer
from .recurrent_base import _RecurrentNetwork

__all__ = ["RNN"]


class RNN(_RecurrentNetwork):
    """Layers of `hidden` units over the steps of sequences: (n, steps, features), or a list of arrays of any lengths.

    `output` is what η is made of: the "last" step (with `bidirectional`, the end of either direction), the "mean" of
    all, or "each" step, for targets at each step. `tokens=V` reads numbers 0 … V − 1, (n, steps) or a list of whole
    arrays, and learns a vector for each; otherwise rows (n, d) are d steps of one number. `dropout` is the probability
    that an output of a layer is dropped in training. `activation` is "tanh" or "relu". Gradients through many steps
    vanish or explode: GRU and LSTM remember longer, and `MAP(clip_norm=1.0)` keeps training steady.

    >>> RNN(8).build((20, 3), 1)
    StackedLayers(
      (layers): ModuleList(
        (0): RNNLayer(
          (ahead): TanhDirection(3, 8)
        )
      )
      (readout): Linear(in_features=8, out_features=1, bias=True)
      (dropout): Dropout(p=0.0, inplace=False)
    )
    """

    activation: Literal["tanh", "relu"] = "tanh"

    def validate(self) -> None:
        super().validate()
        require(self.activation in ("tanh", "relu"), self, "activation", "tanh or relu")

    def _layer(self, in_features: int) -> RecurrentLayer:
        return RNNLayer(in_features, self.hidden, self.bidirectional, self.activation)
