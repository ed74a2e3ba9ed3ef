"""GRU: gated recurrent units, whose gates decide how much of the state is used and how much is kept.

r = σ(W_r x + U_r h + b_r),   z = σ(W_z x + U_z h + b_z)
h_t = (1 − z) ⊙ tanh(W_n x + b_n + r ⊙ (U_n h + c)) + z ⊙ h_{t−1},   η = V h + d
"""

from __future__ import annotations

from .layers.recurrent import GRULayer, RecurrentLayer
from .recurrent_base import _RecurrentNetwork

__all__ = ["GRU"]


class GRU(_RecurrentNetwork):
    """Layers of `hidden` gated units over the steps of sequences: (n, steps, features), or a list of any lengths.

    The arguments are those of `RNN`: `output` is "last", "mean" or "each", `tokens=V` reads token numbers.

    >>> from likely import Regressor
    >>> from likely.inference import MAP
    >>> X = [[1.0], [2.0, 3.0], [4.0, 5.0, 6.0]]
    >>> Regressor(network=GRU(4, output="each"), inference=MAP(epochs=2)).fit(X, X).predict(X)[2].shape
    (3,)
    """

    def _layer(self, in_features: int) -> RecurrentLayer:
        return GRULayer(in_features, self.hidden, self.bidirectional)
