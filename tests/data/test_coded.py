"""Columns of a table as numbers and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError, ModelFileError
from likely.data.coded import Coded, coded_from_json
from likely.data.frame import as_frame, column_of

TABLE = pl.DataFrame({"n": [1, 2, 40], "x": [0.5, None, 2.5], "b": [True, False, True], "t": ["red", None, "blue"]})


@pytest.mark.parametrize("name", TABLE.columns)
def test_decoding_what_was_encoded_gives_the_column_back(name):
    series = column_of(as_frame(TABLE), name)
    coded = Coded.of(series)
    values = coded.encode(series)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(values), TABLE[name].is_null().to_numpy())
    decoded = coded.decode(values)
    assert [None if v != v else v for v in decoded.to_list()] == TABLE[name].to_list()


def test_text_that_training_did_not_show_is_named():
    coded = Coded.of(column_of(as_frame(TABLE), "t"))
    with pytest.raises(DataError, match=r"'t' has 'green' at row 0, which training did not show; known: 'blue', 'red'"):
        coded.encode(column_of(as_frame({"t": ["green"]}), "t"))


def test_a_file_describes_its_columns():
    columns = [Coded.of(column_of(as_frame(TABLE), name)) for name in TABLE.columns]
    assert coded_from_json([column.to_json() for column in columns]) == tuple(columns)
    with pytest.raises(ModelFileError, match="unknown kind 'date'"):
        coded_from_json([{"name": "a", "kind": "date", "levels": []}])
    with pytest.raises(ModelFileError, match="without names of their own"):
        coded_from_json([columns[0].to_json()] * 2)


def test_a_gap_in_text_of_pandas_is_missing_too():
    series = column_of(as_frame(pd.DataFrame({"t": ["red", None, "blue"]})), "t")
    np.testing.assert_array_equal(Coded.of(series).encode(series), [1.0, np.nan, 0.0])
