from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import DataConversionWarning

from likely.core.errors import DataError, ModelFileError
from likely.models.labels import (
    as_column,
    as_entries,
    encode_labels,
    missing_among,
    read_labels,
    restore_classes,
    shown,
    state_of_classes,
)


def read(y, **kwargs):
    return read_labels(y, "Classifier", rows=len(y), **kwargs)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a", "b"]),
        np.array([3, 7, 3]),
        np.array([True, False, True]),
        np.array([2.0, 1.0, 2.0]),
        np.array(["b", "a", "b"], dtype=object),
        np.array([2, 1, 2], dtype=object),
    ],
    ids=str,
)
def test_codes_and_classes_give_the_labels_back(labels):
    read_labels, missing = read(labels)
    classes = np.unique(read_labels)
    codes = encode_labels(read_labels, missing, classes)
    np.testing.assert_array_equal(classes[codes.astype(int)], labels)
    back = restore_classes(state_of_classes(classes))
    np.testing.assert_array_equal(back, classes)
    assert back.dtype == classes.dtype


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ([1.0, np.nan, 2.0], [False, True, False]),
        (np.array(["a", None, "b"], dtype=object), [False, True, False]),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), [False, True, False]),
        (pd.Series([1, None, 2], dtype="Int64"), [False, True, False]),
        (torch.tensor([0, 1, 0]), [False, False, False]),
    ],
    ids=["nan", "none", "pandas text", "pandas numbers", "torch"],
)
def test_missing_labels_are_seen_in_every_kind_of_column(labels, missing):
    present, gone = read(labels)
    assert gone.tolist() == missing
    codes = encode_labels(present, gone, np.unique(present[~gone]))
    np.testing.assert_array_equal(np.isnan(codes), missing)


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (np.array([0, 1, -1]), [False, False, True]),
        (np.array([-1, 1, -1]), [True, False, True]),
        (np.array([-1.0, np.nan, 2.0]), [True, True, False]),
        (np.array([-1, None, 2], dtype=object), [True, True, False]),
        (np.array(["-1", "a", "b"]), [False, False, False]),  # "-1" is not −1
    ],
)
def test_a_label_is_missing_only_if_it_was_named(labels, missing):
    assert read(labels, missing_label=-1)[1].tolist() == missing == missing_among(labels, -1).tolist()
    plain = [value is None or value != value for value in labels.tolist()]
    assert read(labels)[1].tolist() == plain == missing_among(labels).tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1.5, 2.0], r"y is continuous \(it has the value 0.5\), and a classifier needs labels; .* use Regressor"),
        ([0.0, np.inf, 1.0], "y contains infinity at row 1; labels are finite"),
        (np.array(["a", 1, "b"], dtype=object), r"y mixes labels of different types \(int, str\); make them all text"),
        (np.array([{}, 1, 2], dtype=object), "y has labels of the type dict, int; labels are text, integers"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "y has dates for labels; labels are text"),
        (np.array([b"a", b"b", b"a"]), "y has bytes for labels; labels are text"),
        ([[0, 1], [1], [0, 1]], "y has entries of different lengths; each row needs as many as the others"),
        (np.array([1j, 0, 1]), "y: Complex data not supported"),
    ],
    ids=["continuous", "infinite", "mixed", "dicts", "dates", "bytes", "ragged", "complex"],
)
def test_what_is_no_label_is_refused(labels, message):
    with pytest.raises(DataError, match=message):
        read(labels)


def test_rows_must_agree():
    with pytest.raises(DataError, match="y has 2 rows, but X has 3 rows; inconsistent numbers of samples"):
        read_labels([0, 1], "Classifier", rows=3)
    with pytest.raises(DataError, match="y has a single value, but X has 3 rows"):
        read_labels(1, "Classifier", rows=3)
    with pytest.raises(DataError, match="Classifier requires y to be passed, but the target y is None"):
        read_labels(None, "Classifier", rows=3)


def test_a_class_that_was_not_seen_is_named_with_its_row():
    present = np.zeros(3, bool)
    with pytest.raises(DataError, match="y has the class 5 at row 2, which was not seen in fit; known: 0, 1"):
        encode_labels(np.array([0, 1, 5]), present, np.array([0, 1]))
    with pytest.raises(DataError, match="y has the class 1 at row 0, which was not seen in fit; known: '0', '1'"):
        encode_labels(np.array([1, 0, 1]), present, np.array(["0", "1"]))  # the text "1" is not the number 1


def test_a_column_is_read_as_rows_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        labels, missing = as_column(np.array([[1], [2]]), np.zeros((2, 1), bool))
    assert labels.tolist() == [1, 2]
    assert missing.shape == (2,)


def test_text_among_numbers_is_named():
    with pytest.raises(DataError, match=r"y has text \('x'\) where numbers are needed; for labels use Classifier"):
        as_entries(["x", 1.0], dtype=float)


def test_long_lists_of_labels_are_cut_short():
    assert shown(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
    assert shown(np.array(["a", "b"])) == "'a', 'b'"


@pytest.mark.parametrize("kind", ["M8[D]", "V4", 3, "S1"])
def test_files_with_other_kinds_of_classes_are_refused(kind):
    with pytest.raises(ModelFileError, match="classes of an unknown kind"):
        restore_classes({"classes": [0, 1], "classes_kind": kind})
    with pytest.raises(ModelFileError, match="fewer than two classes"):
        restore_classes({"classes": [0], "classes_kind": "<i8"})
