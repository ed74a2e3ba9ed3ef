"""LSTM: long short-term memory, cells that gates write to, keep and read.

i, f, o = σ(W x_t + U h_{t−1} + b) each,   g = tanh(W_g x_t + U_g h_{t−1} + b_g)
c_t = f ⊙ c_{t−1} + i ⊙ g,   h_t = o ⊙ tanh(c_t),   η = V h + d
"""

from __future__ import annotations

from .layers.recurrent import LSTMLayer, RecurrentLayer
from .recurrent_base import _RecurrentNetwork

__all__ = ["LSTM"]


class LSTM(_RecurrentNetwork):
    """Layers of `hidden` memory cells over the steps of sequences: (n, steps, features), or a list of any lengths.

    The arguments are those of `RNN`: `output` is "last", "mean" or "each", `tokens=V` reads token numbers. Biases of
    forget gates start at 1, so that cells keep what they hold.

    >>> from likely import Classifier
    >>> from likely.inference import MAP
    >>> model = Classifier(network=LSTM(4, tokens=3), inference=MAP(epochs=2), random_state=0)
    >>> model.fit([[0, 1, 2], [2, 2], [1], [0, 0, 1, 1]], [0, 1, 0, 1]).predict([[0, 2]]).shape
    (1,)
    """

    def _layer(self, in_features: int) -> RecurrentLayer:
        return LSTMLayer(in_features, self.hidden, self.bidirectional)
