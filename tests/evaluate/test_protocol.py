"""What evaluation asks of a model: the estimator inside pipelines and searches, and rows of any kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from likely import Classifier
from likely.core.errors import DataError
from likely.evaluate.protocol import as_array, missing, need, opened, take

RNG = np.random.default_rng(0)
X = RNG.normal(3.0, 2.0, size=(30, 2))
Y = (X[:, 0] > 3).astype(int)


def test_pipelines_and_searches_are_opened_with_x_as_the_last_step_sees_it():
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, cv=2).fit(X, Y)
    for model in (pipe, search):
        inner, seen = opened(model, X)
        assert isinstance(inner, LogisticRegression)
        np.testing.assert_allclose(seen.mean(0), 0.0, atol=1e-12)
        np.testing.assert_allclose(inner.predict_proba(seen), model.predict_proba(X))
    bare = LogisticRegression()
    inner, seen = opened(bare, X)
    assert inner is bare
    assert seen is X


def test_a_model_without_the_method_is_told_what_would_do():
    need(LogisticRegression(), ["log_prob", "predict_proba"], "calibration")
    with pytest.raises(DataError, match="coverage needs a model with predict_interval or predict_dist; LogisticReg"):
        need(LogisticRegression(), ["predict_interval", "predict_dist"], "coverage")


def test_missing_targets_are_gaps_or_the_label_that_the_model_was_told():
    y = np.array([0.0, np.nan, 1.0])
    assert missing(LogisticRegression(), y).tolist() == [False, True, False]
    told = make_pipeline(StandardScaler(), Classifier(missing_label=-1))
    assert missing(told, np.array([0, -1, 1])).tolist() == [False, True, False]
    assert missing(LogisticRegression(), np.array([0, -1, 1])).tolist() == [False, False, False]


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor, pd.DataFrame, pl.DataFrame, list])
def test_some_rows_of_any_table(make):
    rows = take(make(X), np.array([4, 0]))
    np.testing.assert_array_equal(np.asarray(rows), X[[4, 0]])
    assert type(rows) is type(make(X))


def test_tensors_become_arrays_without_their_gradient():
    value = torch.ones(2, requires_grad=True)
    assert as_array(value).tolist() == [1.0, 1.0]
    assert as_array([1, 2]).dtype.kind == "i"
