import pickle

import numpy as np
import pytest

from likely.probability import Estimate


def test_mean_and_standard_error():
    draws = np.array([1.0, 2.0, 3.0, 6.0])
    estimate = Estimate.mean(draws)
    assert estimate == 3.0
    assert estimate.standard_error == pytest.approx(draws.std(ddof=1) / 2)


def test_an_infinite_draw_is_certain():
    estimate = Estimate.mean(np.array([1.0, np.inf]))
    assert estimate == np.inf
    assert estimate.standard_error == 0


def test_it_is_a_float_that_travels():
    estimate = Estimate(0.5, 0.01)
    copy = pickle.loads(pickle.dumps(estimate))
    assert (copy, copy.standard_error) == (0.5, 0.01)
    assert estimate + 1 == 1.5
    assert f"{estimate:.2f}" == "0.50"
    assert str(estimate) == "0.500 ± 0.010"
