"""What is given in place of predictions, results or models is named, with what to give instead."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from likely import GaussianMixture, Regressor, evaluate, plots
from likely.core.errors import DataError
from likely.core.takes import described

X = np.arange(8.0).reshape(-1, 1)
Y = np.array([0.0, 1.1, 1.9, 3.2, 3.9, 5.1, 6.0, 6.9])


@pytest.fixture(scope="module")
def model():
    return Regressor().fit(X, Y)


@pytest.mark.parametrize("name", ["rmse", "mae", "r2", "accuracy", "confusion_matrix", "precision", "recall", "f1"])
def test_metrics_of_predictions_given_a_model(name, model):
    with pytest.raises(
        DataError, match=rf"{name}\(actual, predicted\) takes values, one for each row; predicted is a "
    ):
        getattr(evaluate, name)(Y, model)
    with pytest.raises(DataError, match="actual is a Regressor: give the targets y"):
        getattr(evaluate, name)(model, X)


@pytest.mark.parametrize("name", ["roc_auc", "brier", "log_loss", "perplexity"])
def test_metrics_of_probabilities_given_a_model(name, model):
    with pytest.raises(DataError, match=r"give model\.predict_proba\(X\)"):
        getattr(evaluate, name)(Y, model)


def test_metrics_given_a_distribution_or_other_rows(model):
    with pytest.raises(DataError, match=r"predicted is a distribution: give its mean or model\.predict\(X\)"):
        evaluate.rmse(Y, model.predict_dist(X))
    with pytest.raises(DataError, match="rmse: actual has 8 rows and predicted has 7; they must agree"):
        evaluate.rmse(Y, model.predict(X)[:7])


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("coverage", r"what evaluate\.coverage\(model, X, y\) gives"),
        ("leaderboard", r"what evaluate\.compare\(models, X, y\) gives"),
        ("history", r"a dict of lists, such as model\.history_ of a trained network"),
        ("confusion", r"counts, actual by predicted: evaluate\.confusion_matrix\(y, model\.predict\(X\)\)"),
        ("network_graph", "a BayesianNetwork"),
        ("mixture", "a fitted GaussianMixture, and its rows X"),
    ],
)
def test_plots_given_a_model_in_place_of_a_result(name, takes, model):
    with pytest.raises(DataError, match=rf"{name} takes {takes}; found a Regressor\."):
        getattr(plots, name)(model)


@pytest.mark.parametrize("name", ["calibration", "qq", "quantile_residuals", "robustness", "attribution", "importance"])
def test_plots_of_results_draw_what_a_function_returns(name, model):
    with pytest.raises(DataError, match=r"draws what .*return"):
        getattr(plots, name)(model)


@pytest.mark.parametrize("name", ["predictions", "predictive_band", "residuals", "process", "state_path", "forecast"])
def test_plots_given_rows_in_place_of_a_model(name):
    with pytest.raises(DataError, match=rf"{name} takes a fitted .*; found an array of shape \(8,\)"):
        getattr(plots, name)(Y, X)


def test_a_model_that_is_not_fitted_is_said_to_be():
    with pytest.raises(DataError, match="found a GaussianMixture that is not fitted"):
        plots.mixture(GaussianMixture(2), X)
    assert described(torch.zeros(2)) == "an array of shape (2,)"


@pytest.mark.parametrize("name", plots.__all__)
def test_every_plot_takes_no_title(name):
    title = inspect.signature(getattr(plots, name)).parameters["title"]
    assert "None" in str(title.annotation)
    assert title.default is not None  # so that None can mean none


def test_no_title_is_drawn_for_none(model):
    draw = {
        "none": plots.predictions(model, X, Y, title=None),
        "own": plots.predictions(model, X, Y, title="Fig. 1"),
        "auto": plots.predictions(model, X, Y),
        "grid": plots.image_grid(np.zeros((2, 3, 3)), title=None),
    }
    titles = {name: ax.get_title(loc="left") for name, ax in draw.items()}
    assert (titles["none"], titles["own"], titles["grid"]) == ("", "Fig. 1", "")
    assert titles["auto"]
