"""Closest record: copies of training rows are found."""

from __future__ import annotations

import numpy as np

from likely.evaluate import closest_record


def test_rows_of_the_same_distribution_are_no_nearer_to_training(seed):
    rng = np.random.default_rng(seed)
    made, train, held = rng.normal(size=(3, 400, 3))
    result = closest_record(made, train, held)
    # 400 fair coins, made dependent by shared neighbours: 6 standard deviations
    assert abs(result.nearer - 0.5) < 6 * 0.5 / np.sqrt(400)
    assert result.copies == 0.0


def test_copies_are_counted(seed):
    rng = np.random.default_rng(seed)
    train, held = rng.normal(size=(2, 200, 3))
    made = np.concatenate([train[:50], rng.normal(size=(50, 3))])
    result = closest_record(made, train, held)
    assert result.copies == 0.5
    # 50 copies and 50 fair coins: 75 nearer on average, fewer than 55 with a probability below 1e-8
    assert result.nearer >= 0.55


def test_unequal_numbers_of_rows_do_not_favour_training(seed):
    rng = np.random.default_rng(seed)
    result = closest_record(rng.normal(size=(400, 2)), rng.normal(size=(3000, 2)), rng.normal(size=(400, 2)))
    assert abs(result.nearer - 0.5) < 6 * 0.5 / np.sqrt(400)
