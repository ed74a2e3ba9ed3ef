"""For doctests and tests alike: pictures that an example drew are put away after it."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _put_away():
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
