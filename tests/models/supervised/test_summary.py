"""The table as a value: its frame, its LaTeX, and what it prints."""

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
