import io
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from rich.console import Console
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression

from likely import Classifier, Regressor
from likely.core.errors import DataError, LikelyWarning
from likely.evaluate import compare, rmse
from likely.priors import Normal


@pytest.fixture
def board(known, draws):
    models = {"wide": known(scale=2.0), "truth": known(), "line": Regressor("poisson"), "shifted": known(shift=1.0)}
    return compare(models, *draws(500), metrics={"rmse": rmse}, random_state=0)


def test_the_truth_leads(board):
    """The expected log score of the truth is higher by log 2 − 3/8 = 0.318 (wide) and ½ (shifted), ± 0.03 here:
    within 5 standard errors of 500 rows, but for 2 of 10⁶ seeds.
    """
    assert board.best == "truth"
    assert [entry.name for entry in board.entries] == ["truth", "wide", "shifted", "line"]
    assert abs(board["wide"].difference + np.log(2) - 3 / 8) < 5 * board["wide"].difference_error
    assert abs(board["shifted"].difference + 0.5) < 5 * board["shifted"].difference_error


def test_differences_are_paired(known, draws, board):
    X, y = draws(500)
    gap = known(scale=2.0).log_prob(X, y) - known().log_prob(X, y)
    assert board["wide"].difference == pytest.approx(gap.mean())
    assert board["wide"].difference_error == pytest.approx(gap.std(ddof=1) / np.sqrt(500))
    assert board["truth"].difference == board["truth"].difference_error == 0


def test_a_failing_model_is_reported_and_not_fatal(board):
    assert re.match(r"DataError: y has a (value that is not an integer|negative value)", board["line"].error)
    assert np.isnan(board["line"].score)


def test_it_prints_as_a_table(board):
    lines = str(board).splitlines()
    assert lines[0].split() == ["model", "score", "to", "the", "best", "rmse", "s", "/", "fit"]
    assert lines[1].startswith("truth")
    assert "best" in lines[1]
    assert "±" in lines[2]
    assert lines[-1].startswith("line     failed: DataError")
    out = io.StringIO()
    Console(file=out, width=200).print(board)
    assert "truth" in out.getvalue()
    assert "failed: DataError" in out.getvalue()


def test_it_is_plain_data(board):
    data = board.to_dict()
    assert json.loads(json.dumps(data["entries"][0]))["name"] == "truth"
    assert data["entries"][3]["error"].startswith("DataError")


def test_a_row_that_a_model_calls_impossible_puts_it_last(known, draws):
    X, y = draws(40)

    class Sure(known):
        def log_prob(self, X, y):
            return np.full(len(y), -np.inf)

    board = compare({"sure": Sure(), "wide": known(scale=3.0)}, X, y, random_state=0)
    assert board.best == "wide"
    assert board["sure"].score == -np.inf
    assert "-inf" in str(board)


def test_a_class_absent_from_training_does_not_stop_a_comparison():
    """All models score −∞ there; the one that scores the other rows better leads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = (X[:, 0] > 0).astype(int)
    y[7] = 2
    folds = [
        (np.arange(20, 60), np.arange(20)),
        (np.r_[:20, 40:60], np.arange(20, 40)),
        (np.arange(40), np.arange(40, 60)),
    ]
    with pytest.warns(LikelyWarning, match="y has the class 2"):
        board = compare({"coin": DummyClassifier(strategy="prior"), "line": Classifier(prior=Normal())}, X, y, cv=folds)
    assert board.best == "line"
    assert board["line"].score == board["coin"].score == -np.inf
    assert board["coin"].difference < 0  # over the rows that both can score


def test_when_nothing_works(draws):
    board = compare({"line": LinearRegression()}, *draws(20))
    with pytest.raises(DataError, match="every model failed; the first with DataError"):
        _ = board.best
    with pytest.raises(DataError, match="models is empty"):
        compare({}, *draws(20))
    with pytest.raises(KeyError, match="the leaderboard has line"):
        _ = board["net"]


def test_importing_evaluate_does_not_import_matplotlib():
    code = "import sys, likely.evaluate; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_without_probabilities_stands_by_its_metrics_alone():
    from sklearn.ensemble import HistGradientBoostingRegressor

    from likely.plots import leaderboard

    X = np.random.default_rng(0).normal(size=(60, 1))
    y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
    models = {"trees": HistGradientBoostingRegressor(max_iter=5), "linear": Regressor()}
    board = compare(models, X, y, cv=2, metrics={"rmse": rmse}, random_state=0)
    assert board.best == "linear"
    assert (board["trees"].scored, board["trees"].error) == (False, None)
    assert board["trees"].metrics["rmse"] > board["linear"].metrics["rmse"]
    assert "no probabilities" in str(board)
    assert "no probabilities" in [text.get_text() for text in leaderboard(board).texts]
    assert "log_prob or predict_proba" in str(compare(models, X, y, cv=2)["trees"].error)  # nothing to show of it


class Worried(DummyClassifier):
    """A model that warns of every fit, with another number."""

    def fit(self, X, y, sample_weight=None):
        warnings.warn(f"the gap was {len(X) / 7:.3g}", RuntimeWarning, stacklevel=2)
        return super().fit(X, y, sample_weight)


def test_a_warning_of_each_fold_is_told_once_with_the_model():
    X, y = np.zeros((31, 1)), np.arange(31) % 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        compare({"calm": DummyClassifier(), "worried": Worried(), "once": Worried()}, X, y, cv=3, random_state=0)
    first = f"{len(X) * 2 // 3 / 7:.3g}"
    assert [str(one.message) for one in told] == [
        f"{name}: the gap was {first} (3 warnings of this kind from 3 fits)" for name in ("worried", "once")
    ]
    assert all(one.filename == __file__ for one in told)
