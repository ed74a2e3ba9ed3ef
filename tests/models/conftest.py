"""What tests of several models share."""

from __future__ import annotations

import pytest

from likely.kernels import Kernel, KernelModule


class _Crossed(Kernel):
    """Not a covariance: −x·x′."""

    def build(self, x):
        return _CrossedModule()


class _CrossedModule(KernelModule):
    def forward(self, x, other=None):
        return -x @ (x if other is None else other).mT

    def spec(self):
        return _Crossed()


@pytest.fixture
def crossed():
    return _Crossed()
