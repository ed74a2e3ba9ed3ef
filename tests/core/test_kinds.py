import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from likely.core.errors import SpecError
from likely.core.kinds import hints_of
from likely.core.spec import Spec


class Kinds(Spec, axis="kinds"):
    """An axis of this file."""


class Inner(Kinds):
    size: int = 1


class Sample(Kinds):
    number: float = 0.0
    count: int = 0
    switch: bool = False
    text: str = ""
    word: Literal["a", "b", 3] = "a"
    maybe: int | None = None
    mixed: Literal["auto"] | float = "auto"
    inner: Kinds | None = None
    function: Callable[[], None] | None = None
    table: Mapping[str, int] | None = None
    anything: Any = None


@pytest.mark.parametrize(
    "values",
    [
        {"number": 1}, {"number": -math.inf}, {"number": math.nan}, {"count": -3}, {"switch": True}, {"text": "x"},
        {"text": Path("x")}, {"word": "b"}, {"word": 3}, {"maybe": 3}, {"maybe": None}, {"mixed": "auto"}, {"mixed": 2},
        {"inner": Inner(2)}, {"function": 3}, {"table": 3}, {"anything": object},
    ],
    ids=str,
)  # fmt: skip
def test_values_of_the_kind_are_taken(values):
    made = Sample(**values)
    for name, value in values.items():
        assert getattr(made, name) is value


@pytest.mark.parametrize(
    ("values", "needs"),
    [
        ({"number": "1"}, r"number='1'\): number must be a number\."),
        ({"number": None}, r"number=None\): number must be a number\."),
        ({"number": True}, r"number=True\): number must be a number\."),
        ({"number": 1j}, r"number=1j\): number must be a number\."),
        ({"count": 1.0}, r"count=1\.0\): count must be an integer\."),
        ({"count": True}, r"count=True\): count must be an integer\."),
        ({"switch": 1}, r"switch=1\): switch must be True or False\."),
        ({"switch": None}, r"switch=None\): switch must be True or False\."),
        ({"text": b"x"}, r"text=b'x'\): text must be text\."),
        ({"word": "c"}, r"word='c'\): word must be 'a' or 'b' or 3\."),
        ({"word": 3.0}, r"word=3\.0\): word must be 'a' or 'b' or 3\."),
        ({"maybe": "no"}, r"maybe='no'\): maybe must be an integer or None\."),
        ({"mixed": "manual"}, r"mixed='manual'\): mixed must be 'auto' or a number\."),
        ({"inner": 3}, r"inner=3\): inner must be a kinds spec or None\."),
        ({"inner": Inner}, r"inner=<class.*: inner must be a kinds spec or None\."),
    ],
)
def test_values_of_another_kind_are_named(values, needs):
    with pytest.raises(SpecError, match=r"^Sample\(" + needs + "$"):
        Sample(**values)


class Strict(Kinds):
    level: float = 1.0
    loose: Any = 1.0

    def validate(self):
        if not self.level > 0 or not self.loose > 0:
            raise SpecError("Strict: validate comes first")


def test_a_check_of_the_class_comes_first_and_its_stumbles_are_explained():
    with pytest.raises(SpecError, match="validate comes first"):
        Strict(level=-1)
    with pytest.raises(SpecError, match=r"Strict\(level='x'\): level must be a number"):
        Strict(level="x")
    with pytest.raises(SpecError, match="Strict: '>' not supported"):
        Strict(loose="x")


def test_annotations_for_type_checkers_only_are_not_checked():
    class Later(Kinds):
        when: "Unknown" = 3  # noqa: F821

    assert Later("x").when == "x"
    assert hints_of(Later) == {}
