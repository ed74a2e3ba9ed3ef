import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from likely import KernelRidge, Regressor
from likely.core.errors import DataError
from likely.core.validation import as_rows, as_weights, check_cast, check_finite, check_squares, device_of, keep_columns
from likely.inference import MAP
from likely.networks import MLP

ROWS = np.arange(6.0).reshape(3, 2)


def _same_memory(x, array):
    return x.data_ptr() == array.__array_interface__["data"][0]


# --- what is taken ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "X",
    [
        ROWS,
        ROWS.tolist(),
        tuple(map(tuple, ROWS)),
        torch.from_numpy(ROWS),
        torch.from_numpy(ROWS).requires_grad_(),
        pd.DataFrame(ROWS, columns=["a", "b"]),
        pl.DataFrame(ROWS, schema=["a", "b"]),
        ROWS.astype(object),
        ROWS.astype(np.int32),
        ROWS.astype(np.uint16),
        ROWS.astype(np.uint64),
        ROWS.astype(np.float16),
        ROWS.astype(np.longdouble),
        ROWS.astype(">f8"),
        np.asfortranarray(ROWS),
        np.flip(ROWS[::-1], 0),
        ROWS.copy()[::-1][::-1],
        [torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0])],
    ],
    ids=lambda X: f"{type(X).__name__} {getattr(X, 'dtype', '')}",
)
@pytest.mark.parametrize("reset", [True, False])
def test_rows_in_any_clothes_are_the_same_rows(X, reset):
    model = Regressor()
    if not reset:
        as_rows(model, X, reset=True)
    x = as_rows(model, X, reset=reset)
    assert isinstance(x, torch.Tensor)
    assert not x.requires_grad
    assert torch.equal(x.double(), torch.from_numpy(ROWS))
    assert model.n_features_in_ == 2


def test_names_of_columns_are_remembered_and_forgotten():
    model = Regressor()
    for frame in (pd.DataFrame(ROWS, columns=["a", "b"]), pl.DataFrame(ROWS, schema=["a", "b"])):
        as_rows(model, frame, reset=True)
        assert list(model.feature_names_in_) == ["a", "b"]
        as_rows(model, frame, reset=False)
        with pytest.raises(DataError, match="feature names should match"):
            as_rows(model, frame[["b", "a"]], reset=False)
    for plain in (ROWS, torch.from_numpy(ROWS)):
        as_rows(model, pd.DataFrame(ROWS, columns=["a", "b"]), reset=True)
        as_rows(model, plain, reset=True)
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 2)])
@pytest.mark.parametrize("reset", [True, False])
def test_nothing_is_copied(dtype, shape, reset):
    array = np.ones(shape, dtype)
    model = Regressor()
    as_rows(model, array, reset=True)
    assert _same_memory(as_rows(model, array, reset=reset), array)
    assert _same_memory(as_rows(model, torch.from_numpy(array), reset=reset), array)
    assert _same_memory(as_rows(model, array[1:, ::2], reset=True), array[1:, ::2])


def test_a_file_in_memory_is_read_where_it_is(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(50, 2)))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for reset in (True, False):
        model = Regressor()
        as_rows(model, mapped, reset=True)
        assert _same_memory(as_rows(model, mapped, reset=reset), mapped)
    before = mapped.copy()
    y = mapped @ [1.0, 2.0]
    for inference in ("exact", MAP(epochs=2)):
        Regressor(inference=inference, random_state=0).fit(mapped, y).predict(mapped)
    assert np.array_equal(mapped, before)


def test_a_fit_never_writes_to_its_data():
    random = np.random.default_rng(0)
    X, y, weight = random.normal(size=(20, 2)), random.normal(size=20), random.uniform(size=20)
    for array in (X, y, weight):
        array.flags.writeable = False
    for inference in ("exact", "newton", MAP(epochs=2)):
        Regressor(inference=inference, random_state=0).fit(X, y, weight).predict(X)


# --- what is refused --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("X", "text"),
    [
        ([1.0, 2.0], "X: Expected 2D array, got 1D array instead"),
        (3.0, "X: Expected 2D array, got scalar"),
        (None, "X: Expected 2D array, got scalar"),
        ([[1], [1, 2]], "X: .*inhomogeneous"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((2, 0)), r"0 feature\(s\)"),
        (ROWS * 1j, "X: Complex data not supported"),
        ([["a", "b"]], "X has text where numbers are needed; for tables .* use likely.TableModel"),
        (np.array([[1, "b"]], dtype=object), "X has text where numbers are needed"),
        (pd.DataFrame({"a": ["x", "y"]}), "X has .*; for tables .* use likely.TableModel"),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"])}), "X has .*; for tables .* use likely.TableModel"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"]), "c": ["x", "y"]}),
            r"X has values that are not numbers \(columns 'b', 'c'\); for tables .* use likely.TableModel",
        ),
        (
            pd.DataFrame({"a": [1.0, 2.0], "d": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
            r"X has values that are not numbers \(column 'd'\); for tables .* use likely.TableModel",
        ),
        (pl.DataFrame({"a": ["x", "y"]}), "X has .*; for tables .* use likely.TableModel"),
        (np.array([["2020-01-01"]], "M8[D]"), r"X has values of kind datetime64\[D\] where numbers are needed"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "X has values of kind datetime64"),
        (torch.ones(3), r"X must be a real, dense tensor of rows \(n, …\); found torch.float32 of shape \(3,\)"),
        (torch.ones(3, 2) * 1j, "X must be a real, dense tensor .* found torch.complex64"),
        (torch.eye(3).to_sparse(), "X must be a real, dense tensor .* sparse_coo"),
        (torch.ones(3, 0), r"X is empty: its shape is \(3, 0\)"),
        (torch.ones(0, 3), r"X is empty: its shape is \(0, 3\)"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(X, text):
    with pytest.raises(DataError, match=text):
        as_rows(Regressor(), X, reset=True)


def test_sparse_matrices_are_refused_with_what_dense_ones_would_take():
    with pytest.raises(DataError, match=r"X is sparse, .* and Regressor takes dense rows; X.toarray\(\) makes .* MB"):
        as_rows(Regressor(), scipy.sparse.csr_matrix(ROWS), reset=True)


@pytest.mark.parametrize(
    "wide", [np.ones((3, 5)), torch.ones(3, 5), np.ones((3, 5)).tolist()], ids=["array", "tensor", "list"]
)
def test_other_numbers_of_columns_are_refused(wide):
    model = Regressor()
    as_rows(model, ROWS, reset=True)
    with pytest.raises(DataError, match="X has 5 features, but Regressor is expecting 2 features as input"):
        as_rows(model, wide, reset=False)


@pytest.mark.parametrize(
    ("value", "named"), [(np.nan, "NaN"), (np.inf, r"infinity \(inf\)"), (-np.inf, r"infinity \(-inf\)")]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", [0, 70_000])
@pytest.mark.parametrize("reset", [True, False])
def test_the_place_of_a_hole_is_named(value, named, dtype, row, reset):
    X = np.zeros((70_001, 2), dtype)
    model = Regressor()
    as_rows(model, X, reset=True)
    X[row, 1] = value
    with pytest.raises(DataError, match=rf"X contains {named} at row {row}, column 1; drop or fill"):
        as_rows(model, X, reset=reset)
    with pytest.raises(DataError, match=rf"X contains {named} at row {row}, column 1"):
        as_rows(model, torch.from_numpy(X), reset=reset)
    with pytest.raises(DataError, match=rf"X contains {named} at row {row}, column 'b'"):
        as_rows(Regressor(), pd.DataFrame(X, columns=["a", "b"]), reset=True)


def test_missing_values_of_any_kind_are_holes():
    frames = [
        [[1.0, None]],
        np.array([[1, None]], dtype=object),
        pd.DataFrame({"a": [1.0], "b": [None]}, dtype="Float64"),
        pl.DataFrame({"a": [1], "b": [None]}, schema={"a": pl.Int64, "b": pl.Int64}),
    ]
    for X in frames:
        with pytest.raises(DataError, match=r"X contains NaN at row 0, column (1|'b')"):
            as_rows(Regressor(), X, reset=True)
    with pytest.raises(DataError, match=r"X contains NaN at row 1, position \[2, 0\]"):
        check_finite(torch.tensor([[[0.0], [0.0], [0.0]], [[0.0], [0.0], [float("nan")]]]), "X")
    with pytest.raises(DataError, match="y contains NaN at row 1;"):
        check_finite(torch.tensor([0.0, float("nan")]), "y")


@given(arrays(np.float32, (4, 2), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_finite_numbers_pass_however_large(X):
    assert torch.equal(as_rows(Regressor(), X, reset=True), torch.from_numpy(X))
    check_finite(torch.full((10, 2), torch.finfo(torch.float32).max), "X")
    check_finite(torch.ones(3, dtype=torch.int64), "X")


# --- weights and devices ----------------------------------------------------------------------------------------
def test_weights_become_one_number_a_row():
    x = torch.ones(3, 2)
    assert as_weights(None, x) is None
    for given_weights in ([1, 0, 2], np.array([1, 0, 2]), torch.tensor([1.0, 0.0, 2.0]), pd.Series([1, 0, 2])):
        weights = as_weights(given_weights, x)
        assert weights.dtype == torch.float64
        assert weights.tolist() == [1.0, 0.0, 2.0]
    assert as_weights(2.0, x).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ([1, 2], r"sample_weight.shape == \(2,\), expected \(3,\)"),
        ([1, -1, 1], "Negative values in data passed to `sample_weight`"),
        ([1, np.nan, 1], "sample_weight contains NaN"),
        ([1, np.inf, 1], "sample_weight contains infinity"),
        ([0, 0, 0], "(?i)sample.weight"),
        ([[1], [1], [1]], "(?i)sample.weights? must be 1D"),
        ("heavy", "sample_weight: could not convert"),
    ],
)
def test_weights_that_are_none_are_named(weight, text):
    with pytest.raises(DataError, match=text):
        as_weights(weight, torch.ones(3, 2))


def test_devices():
    assert device_of("auto").type in ("cpu", "cuda")
    assert device_of("cpu") == device_of(torch.device("cpu")) == torch.device("cpu")
    for wrong in ("gpu", "meta", None, 1.5, "cuda:99"):
        with pytest.raises(DataError, match=r'device=.* cannot be used here \(.*\); use "auto", "cpu" or "cuda"'):
            device_of(wrong)


def test_a_read_only_array_brings_no_warning():
    X = ROWS.copy()
    X.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_rows(Regressor(), X, reset=True)


def test_memory_that_may_not_be_written_to_is_taken_without_a_warning():
    column = np.array([1.0, 2.0, 3.0])
    column.flags.writeable = False
    grid = np.ones((3, 2))
    grid.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weight = as_weights(column, ROWS)
        assert weight is not None
        weight += 1  # its own memory
        Regressor().fit(ROWS, column, sample_weight=column)
        Regressor().fit(ROWS, np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 5.0]]), sample_weight=grid)
        frame = pd.DataFrame({"w": column})
        Regressor("poisson").fit(ROWS, frame["w"], sample_weight=frame["w"], exposure=frame["w"])
    assert column.tolist() == [1.0, 2.0, 3.0]


def test_columns_of_a_list_of_frames_are_kept_and_asked_for():
    model = SimpleNamespace()
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    keep_columns(model, [frame, pl.DataFrame(frame.to_dict("list"))], reset=True)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    keep_columns(model, [frame.to_numpy()], reset=False)
    with pytest.raises(
        DataError, match="X has frames with the columns b, a; the model was fitted on a, b, in this order"
    ):
        keep_columns(model, [frame[["b", "a"]]], reset=False)
    with pytest.raises(DataError, match=r"X\[2\] has the columns b, but X\[0\] has a, b"):
        keep_columns(model, [frame, frame.to_numpy(), frame[["b"]]], reset=True)


def test_a_number_whose_square_is_no_number_is_named():
    """In distances it would be an infinity, and spoil the answers about other rows."""
    X = torch.ones((5, 2), dtype=torch.float64)
    check_squares(X * 1e149)
    check_squares(X[:0])
    X[3, 1] = -1e160
    with pytest.raises(DataError, match=r"X contains -1e\+160 at row 3, column 1, whose square is beyond all numbers"):
        check_squares(X)


def test_a_cast_that_makes_a_number_infinite_is_refused():
    x = torch.tensor([[1.0, float("nan")], [1e39, 2.0]], dtype=torch.float64)
    with pytest.raises(DataError, match=r"X has the number 1e\+39; the model's float32 ends at 3.4e\+38"):
        check_cast(x, x.float())
    check_cast(x[:1], x[:1].float())
    check_cast(x, x)
    check_cast(torch.tensor([float("inf")]), torch.tensor([float("inf")]))


@pytest.mark.parametrize("model", [Regressor(network=MLP((2,)), inference=MAP(epochs=1)), KernelRidge()])
def test_one_absurd_row_is_an_error_and_not_an_answer(model):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model.fit(X, X[:, 0])
    for value in (1e39, 1e160) if isinstance(model, Regressor) else (1e160,):
        new = X[:3].copy()
        new[1, 0] = value
        with pytest.raises(DataError, match=r"X (has the number|contains) 1e\+"):
            model.predict(new)
