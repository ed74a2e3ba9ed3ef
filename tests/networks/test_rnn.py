"""The plain recurrent network: its units, and how far it remembers at the start."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.networks import RNN


def test_orthogonal_states_keep_their_length_while_they_are_linear():
    """With ReLU and nothing new, ‖h_t‖ never grows: ‖max(0, U h)‖ ≤ ‖U h‖ = ‖h‖."""
    torch.manual_seed(0)
    layer = RNN(8, activation="relu").build((50, 2), 1).layers[0]
    x = torch.zeros(4, 50, 2)
    x[:, 0] = torch.randn(4, 2)
    lengths = layer(x).norm(dim=-1)
    assert bool((lengths.diff(dim=1) <= 1e-6).all())


def test_a_wrong_activation_is_named():
    with pytest.raises(SpecError, match="activation must be tanh or relu"):
        RNN(activation="gelu")
