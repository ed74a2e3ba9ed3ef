"""Parts of a model as text: nothing is ever evaluated."""

from __future__ import annotations

import pytest

from likely.cli.options import parts_of
from likely.core.errors import SpecError


def test_parts_are_texts_by_name():
    text = "network=mlp(hidden=[8], activation='gelu'), inference=ensemble(members=3, by=map(epochs=5))"
    assert parts_of(text) == {
        "network": "mlp(hidden=[8], activation='gelu')",
        "inference": "ensemble(members=3, by=map(epochs=5))",
    }


@pytest.mark.parametrize("text", ["", "mlp()", "network=", "network=mlp(", "(", "x" * 10_000 + "=", "**{}"])
def test_what_is_no_list_of_parts(text):
    with pytest.raises(SpecError, match="--models"):
        parts_of(text)


@pytest.mark.parametrize("text", ["colour=red()", "prior=flat(), prior=normal()"])
def test_each_part_is_known_and_given_once(text):
    with pytest.raises(SpecError, match=r"each at most once|write its parts"):
        parts_of(text)
