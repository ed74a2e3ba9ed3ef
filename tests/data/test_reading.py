"""How the text of tables is read: what is told, kept in files, and taken over by later tables."""

from __future__ import annotations

import pytest

from likely.core.errors import ModelFileError
from likely.data.reading import Reading


def test_what_is_given_comes_back():
    for told in ({}, {"separator": ";", "decimal": ","}, {"missing": ["none", "-1"], "decimals": {"a": "."}}):
        assert Reading.of(told).given() == told
    assert Reading.of({}) == Reading()


def test_a_mark_that_a_person_gives_is_that_of_all_columns():
    assert Reading(decimal=".").over(Reading(decimal=",", decimals={"a": "."})) == Reading(decimal=".")
    assert Reading(";").over(Reading(decimals={"a": "."})) == Reading(";", decimals={"a": "."})


@pytest.mark.parametrize(
    "told", [{"decimal": 3}, {"quote": '"'}, {"missing": "none"}, {"decimals": {"a": "!"}}, {"decimals": [","]}]
)
def test_a_reading_of_a_file_is_checked(told):
    with pytest.raises(ModelFileError, match="a reading of tables that is not one"):
        Reading.of(told)
