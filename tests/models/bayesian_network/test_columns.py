import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likely.core.errors import DataError
from likely.models.bayesian_network.columns import encode, find_states, read_columns

NAMES = ["rain", "wet"]
TABLES = {
    "pandas": pd.DataFrame({"rain": ["no", "yes", None], "wet": [1, np.nan, 0], "other": 0}),
    "categories": pd.DataFrame({"rain": pd.Categorical(["no", "yes", None]), "wet": pd.array([1, None, 0], "Int64")}),
    "polars": pl.DataFrame({"rain": ["no", "yes", None], "wet": [1, None, 0]}),
    "polars categories": pl.DataFrame(
        {"rain": pl.Series(["no", "yes", None], dtype=pl.Categorical), "wet": [1, None, 0]}
    ),
    "columns": {"rain": ["no", "yes", None], "wet": np.array([1, np.nan, 0])},
    "rows": [{"rain": "no", "wet": 1}, {"rain": "yes"}, {"wet": 0}],
    "array": np.array([["no", 1], ["yes", None], [None, 0]], dtype=object),
    "lists": [["no", 1], ["yes", None], [None, 0]],
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_reads_the_same(kind):
    columns = read_columns(TABLES[kind], NAMES)
    assert find_states(columns["rain"]) == ["no", "yes"]
    assert find_states(columns["wet"]) == [0, 1]
    assert encode(columns["rain"], ["no", "yes"]).tolist() == [0, 1, -1]
    assert encode(columns["wet"], [1, 0]).tolist() == [0, -1, 1]


@pytest.mark.parametrize("values", [["no", "yes", None], [0, 1, None], [False, True, None], [0.5, 1.5, None], [None]])
def test_long_columns_read_as_short_ones(values):
    states = [value for value in values if value is not None]
    short = encode(read_columns({"rain": values}, NAMES)["rain"], states)
    long = encode(read_columns({"rain": values * 500}, NAMES)["rain"], states)
    np.testing.assert_array_equal(long, np.tile(short, 500))
    with pytest.raises(DataError, match=r"X has 7 in column 'rain' \(row 1200\), no state"):
        encode(read_columns({"rain": [None] * 1200 + [7]}, NAMES)["rain"], states)


def test_numbers_booleans_and_tensors_are_states_too():
    columns = read_columns({"rain": [True, False, True], "wet": torch.tensor([0.5, 1.5, float("nan")])}, NAMES)
    assert encode(columns["rain"], [False, True]).tolist() == [1, 0, 1]
    assert (find_states(columns["wet"]), encode(columns["wet"], [0.5, 1.5]).tolist()) == ([0.5, 1.5], [0, 1, -1])
    array = read_columns(torch.tensor([[0, 1], [1, 1]]), NAMES)
    assert find_states(array["wet"]) == [1]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"rain": ["no"], "wett": [1]}, "X has a column 'wett' but none of the name 'wet'"),
        ({"a": [1]}, "X has none of the variables 'rain', 'wet' as a column"),
        ({"rain": ["no"], "wet": [1, 0]}, "X has 1 values of 'rain' but 2 of 'wet'"),
        ({"rain": [], "wet": []}, "X has no rows"),
        ({"rain": "no", "wet": [1]}, "column 'rain' must be a list or an array of values; found 'no'"),
        ({"rain": ["no", 3], "wet": [1, 0]}, r"column 'rain' mixes values of different types \(int, str\)"),
        ({"rain": [1.0, float("inf")]}, "column 'rain' holds infinity"),
        ({"rain": pl.Series([[1]])}, "column 'rain' holds List"),
        (np.zeros((2, 3)), r"X has shape \(2, 3\); an array needs one column for each of the 2 variables"),
        (3, "X must be a table, a dict of columns, a list of dicts or an array; found a int"),
    ],
)
def test_other_tables_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        read_columns(X, NAMES)


def test_a_value_that_is_no_state_is_named_with_its_row():
    series = pl.Series("rain", ["no", None, "yess"])
    with pytest.raises(DataError, match=r"X has 'yess' in column 'rain' \(row 2\), no state\. Did you mean 'yes'\?"):
        encode(series, ["no", "yes"])
