"""How many draws, in which form, and how a model says that it has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.draws import Refused, count_of, form_of, in_form
from likely.core.errors import DataError

ROWS = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "3", None])
def test_counts_are_integers_above_zero(n):
    with pytest.raises(DataError, match=r"rows=.*: how many to draw must be an integer above 0"):
        count_of(n, "rows")


def test_counts_of_numpy_become_plain_integers():
    assert count_of(np.int64(3)) == 3
    assert type(count_of(np.int64(3))) is int


@pytest.mark.parametrize("table", [ROWS, pd.DataFrame(ROWS, columns=["a", "b"]), pl.DataFrame(ROWS, schema=["a", "b"])])
def test_rows_come_back_in_the_form_they_came_in(table):
    again = in_form(ROWS, form_of(table), ["a", "b"])
    assert type(again) is type(table)
    np.testing.assert_array_equal(np.asarray(again), ROWS)
    if form_of(table) != "array":
        assert list(again.columns) == ["a", "b"]


def test_frames_without_names_number_their_columns():
    assert in_form(ROWS, "polars").columns == ["0", "1"]
    assert list(in_form(ROWS, "pandas").columns) == [0, 1]
    assert form_of(ROWS.tolist()) == "array"


class Base:
    def log_prob(self, X):
        return 0.0


class Nearest(Base):
    log_prob = Refused("distances are not a density")


def test_a_refused_answer_is_missing_and_says_why():
    assert hasattr(Base(), "log_prob")
    assert not hasattr(Nearest(), "log_prob")
    with pytest.raises(AttributeError, match="Nearest has no log_prob: distances are not a density"):
        _ = Nearest().log_prob
