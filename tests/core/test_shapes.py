"""Shapes without numbers: the same as those with, and found without torch's compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from likely.core.shapes import without_numbers
from likely.networks import ConvNet, ResNet, UNet, ViT

NETWORKS = [ConvNet((4, 8)), ConvNet((4,), norm="layer", dropout=0.2), ResNet(), UNet((4, 8)), ViT(patch=4)]


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_parameters_buffers_and_outputs_have_their_shapes_and_dtypes(network):
    real = network.build((1, 16, 16), 3)
    with without_numbers():
        draft = network.build((1, 16, 16), 3)
        shape = draft(torch.empty(2, 1, 16, 16)).shape
    assert shape == real(torch.zeros(2, 1, 16, 16)).shape
    for name, value in real.state_dict().items():
        own = draft.state_dict()[name]
        assert own.device.type == "meta"
        assert (own.shape, own.dtype) == (value.shape, value.dtype), name


def test_nothing_has_memory_and_global_random_numbers_are_not_touched():
    state = torch.random.get_rng_state()
    with without_numbers():
        layer = nn.Linear(10**6, 10**6)
        mask = torch.ones(10**6, 10**6).tril() > 0
    assert layer.weight.device.type == "meta"
    assert mask.dtype == torch.bool
    assert torch.equal(state, torch.random.get_rng_state())


def test_tensors_that_cannot_be_joined_or_broadcast_are_errors():
    with without_numbers():
        with pytest.raises(RuntimeError, match="cannot be joined along axis 1"):
            torch.cat([torch.empty(2, 3), torch.empty(3, 3)], 1)
        with pytest.raises(RuntimeError):
            torch.empty(2, 3) + torch.empty(2, 4)
        assert torch.cat([torch.empty(2, 3), torch.empty(2, 4)], -1).shape == (2, 7)


def test_fitting_images_and_sequences_does_not_load_the_compiler(tmp_path):
    code = f"""
import sys
import numpy as np
import likely
from likely import Classifier
from likely.inference import MAP
from likely.networks import LSTM, ConvNet, ViT
rng = np.random.default_rng(0)
images, sequences = rng.normal(size=(12, 1, 12, 12)), rng.normal(size=(12, 5, 2))
fits = [(ConvNet((4,)), images), (ViT(patch=4, width=8), images), (LSTM(4), sequences)]
for network, X in fits:
    model = Classifier(network=network, inference=MAP(epochs=1), random_state=0).fit(X, np.arange(12) % 2)
    model.save({str(tmp_path / "model.likely")!r})
    likely.load({str(tmp_path / "model.likely")!r}).predict(X)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
