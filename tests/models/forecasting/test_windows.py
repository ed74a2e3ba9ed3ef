from __future__ import annotations

import numpy as np

from likely.models.forecasting.windows import Past, filled, training_rows

NONE = np.empty((10, 0))


def test_rows_hold_the_lags_and_the_steps_that_followed():
    z = np.arange(10.0)
    rows = training_rows([z], [z], [NONE], (1, 3), 2, False)
    np.testing.assert_array_equal(rows.x, np.column_stack([z[2:8], z[0:6]]))
    np.testing.assert_array_equal(rows.y, np.column_stack([z[3:9], z[4:10]]))
    sequence = training_rows([z], [z], [NONE], (1, 2, 3), None, True)
    np.testing.assert_array_equal(sequence.x[0, :, 0], [0.0, 1.0, 2.0])  # the oldest first


def test_covariates_are_those_of_the_step_itself():
    z, known = np.arange(10.0), np.arange(10.0)[:, None] * 10
    flat = training_rows([z], [z], [known], (1,), None, False)
    np.testing.assert_array_equal(flat.x[:, 1], 10 * flat.y)
    sequence = training_rows([z], [z], [known], (1, 2), None, True)
    np.testing.assert_array_equal(sequence.x[:, -1, 1], 10 * sequence.y)


def test_a_missing_target_is_no_row_and_short_series_have_none():
    z = np.arange(10.0)
    holes = z.copy()
    holes[5] = np.nan
    rows = training_rows([holes, z[:1]], [filled(holes), z[:1]], [NONE, NONE[:1]], (1,), None, False)
    assert 5 not in rows.at
    assert set(rows.owner) == {0}


def test_gaps_are_filled_on_the_line_or_on_the_pattern_of_the_season():
    np.testing.assert_allclose(filled(np.array([0.0, np.nan, np.nan, 3.0])), [0, 1, 2, 3])
    t = np.arange(48.0)
    z = 0.5 * t + 10 * np.sin(2 * np.pi * t / 12)
    holes = z.copy()
    holes[20:23] = np.nan
    assert np.abs(filled(holes, 12) - z).max() < 0.5 * np.abs(filled(holes) - z).max()
    assert filled(z) is z


def test_windows_are_the_last_values():
    past = Past((np.arange(5.0), np.arange(9.0)), np.empty((2, 1, 0)))
    np.testing.assert_array_equal(past.windows(2), [[3, 4], [7, 8]])
