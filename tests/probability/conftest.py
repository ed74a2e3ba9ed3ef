from __future__ import annotations

import pytest
import torch


@pytest.fixture
def generator():
    torch.manual_seed(0)
