from __future__ import annotations

import sys

import pytest

import likely.likelihoods as room
from likely.core.room import open_room
from likely.core.spec import _REGISTRY, registered
from likely.likelihoods import Likelihood

FILE = """
import torch
from likely.likelihoods.base import Likelihood

class Rayleigh(Likelihood):
    def size(self, target):
        return 1

    def distribution(self, eta):
        return torch.distributions.Weibull(eta[..., 0].exp(), torch.full_like(eta[..., 0], 2.0))
"""


@pytest.fixture
def another_file(tmp_path, monkeypatch):
    (tmp_path / "rayleigh.py").write_text(FILE)
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    monkeypatch.setattr(room, "__all__", [*room.__all__])
    yield
    _REGISTRY["likelihood"].pop("Rayleigh")
    sys.modules.pop("likely.likelihoods.rayleigh")
    del room.Rayleigh, room.rayleigh


def test_a_new_file_is_all_it_takes(another_file):
    open_room("likely.likelihoods", Likelihood)
    assert "Rayleigh" in registered(Likelihood)
    assert "Rayleigh" in room.__all__
    assert Likelihood.parse("rayleigh") == room.Rayleigh()


def test_names_that_the_room_lists_stay_as_they_are():
    before = list(room.__all__)
    open_room("likely.likelihoods", Likelihood)
    assert room.__all__ == before
