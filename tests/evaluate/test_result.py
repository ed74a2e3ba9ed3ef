from dataclasses import dataclass

import numpy as np
import pytest

from likely.evaluate.result import Result, plus_minus


@dataclass(frozen=True)
class Inner(Result):
    value: float


@dataclass(frozen=True)
class Outer(Result):
    array: np.ndarray
    number: np.float64
    inner: tuple[Inner, ...]
    named: dict[str, float]


def test_results_become_plain_data():
    data = Outer(np.arange(2), np.float64(0.5), (Inner(1.0),), {"a": np.float32(2.0)}).to_dict()
    assert data == {"array": [0, 1], "number": 0.5, "inner": [{"value": 1.0}], "named": {"a": 2.0}}
    assert type(data["number"]) is float


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(1.234567, 0.01, "1.235 ± 0.010"), (123.4, 12.0, "123 ± 12"), (0.5, 0.0, "0.5"), (-np.inf, np.nan, "-inf")],
)
def test_digits_follow_the_standard_error(value, error, text):
    assert plus_minus(value, error) == text
