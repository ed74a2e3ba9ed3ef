"""The table as a value: its frame, its LaTeX, and what it prints."""

import json

import numpy as np

from likely import Regressor

RNG = np.random.default_rng(9)
X = RNG.normal(size=(50, 3))
Y = X.sum(1) + RNG.normal(size=50)


def test_frames_and_latex_have_a_row_for_each_term():
    summary = Regressor().fit(X, Y).summary(level=0.9)
    frame = summary.to_frame()
    assert frame["term"].to_list() == list(summary.terms)
    assert frame.columns == ["term", "estimate", "standard_error", "t", "p", "lower 90 %", "upper 90 %"]
    assert summary.to_latex().count(r"\\") == 5
    assert "t with 46 df" in str(summary)


def test_a_dash_is_explained():
    doubled = str(Regressor().fit(X[:, [0, 1, 0]], Y).summary())
    assert "— no standard error: the rows do not determine this term" in doubled
    assert "no standard error" not in str(Regressor().fit(X, Y).summary())
    assert "no more rows than coefficients" in str(Regressor().fit(X[:4], Y[:4]).summary())


def test_json_has_the_numbers_of_the_table():
    summary = Regressor().fit(X[:, [0, 1, 0]], Y).summary()
    told = summary.to_json()
    assert [row["term"] for row in told["terms"]] == list(summary.terms)
    assert [row["standard_error"] for row in told["terms"]][::2] == [None, None]
    assert told["terms"][1]["p"] == summary.p_value[1]
    assert told["facts"] == dict(summary.facts)
    json.dumps(told, allow_nan=False)
