"""EnergyModel: contrastive training finds a known distribution; normalisers, gaps, files, every inference."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import likely
from likely import EnergyModel
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import MAP
from likely.inference.objective import RowDensity, able
from likely.models.generative import CD, PCD, RBM
from likely.optim import Adam, Cosine

STATES = np.array(list(itertools.product([0, 1], repeat=4)))
TRUE = np.exp(2.0 * (STATES[:, 0] == STATES[:, 1]) + 1.5 * (STATES[:, 2] != STATES[:, 3]))
TRUE /= TRUE.sum()
ROWS = STATES[np.random.default_rng(0).choice(16, 1000, p=TRUE)]
QUICK = MAP(Adam(0.03), epochs=60, batch_size=100, schedule=Cosine())


def small(**options):
    given = {"energy": RBM(6), "negatives": PCD(2, chains=200), "inference": QUICK, "random_state": 0}
    return EnergyModel(**given | options)


@pytest.mark.parametrize("negatives", [PCD(2, chains=200), CD(5)])
def test_contrastive_training_fits_a_known_distribution(negatives):
    """KL(p ‖ model) below 0.05, where independent columns have 0.5 or so."""
    model = small(negatives=negatives).fit(ROWS)
    log_prob = model.log_prob(STATES)
    assert np.exp(log_prob).sum() == pytest.approx(1.0, rel=1e-5)
    assert TRUE @ (np.log(TRUE) - log_prob) < 0.05
    assert model.log_prob_kind_ == "exact"
    new = model.sample(1000, random_state=0)
    assert (new[:, 0] == new[:, 1]).mean() == pytest.approx(np.exp(2) / (1 + np.exp(2)), abs=0.1)


def test_gaps_are_filled_given_the_rest():
    model = small().fit(ROWS)
    filled = model.impute([[0, np.nan, 1, 0], [1, np.nan, 0, 1]], draws=200, random_state=0)
    expected = np.exp(2) / (1 + np.exp(2))
    assert filled[:, 1, 1].mean() == pytest.approx(expected, abs=0.15)
    assert filled[:, 0, 1].mean() == pytest.approx(1 - expected, abs=0.15)


def test_beyond_the_sum_log_prob_is_an_estimate_with_an_error():
    rows = (np.random.default_rng(0).random((60, 22)) < 0.3).astype(float)
    model = small(energy=RBM(21), inference=MAP(epochs=2)).fit(rows)
    value, error = model.log_prob(rows[:3], return_error=True)
    assert model.log_prob_kind_ == "estimate"
    assert ((error > 0) & (error < 0.1)).all()
    log_z, its_error = model.log_normaliser()
    np.testing.assert_allclose(value, -model.free_energy(rows[:3]) - log_z)
    np.testing.assert_allclose(error, np.repeat(its_error, 3))


EVERY = able(RowDensity("EnergyModel", "bound", random=True))


@pytest.mark.parametrize("name", EVERY)
def test_every_inference_of_a_bound_fits_it(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = small(energy=RBM(2), negatives=PCD(1, chains=8), inference=EVERY[name].example()).fit(ROWS[:20])
    assert np.isfinite(model.log_prob(ROWS[:5])).all()
    assert set(np.unique(model.sample(3, random_state=0))) <= {0.0, 1.0}


def test_a_file_gives_the_same_answers(tmp_path):
    model = small(inference=MAP(epochs=1)).fit(ROWS)
    model.save(tmp_path / "e.likely")
    again = likely.load(tmp_path / "e.likely")
    np.testing.assert_array_equal(again.log_prob(STATES), model.log_prob(STATES))
    np.testing.assert_array_equal(again.sample(4, random_state=0), model.sample(4, random_state=0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: small(energy="mlp").fit(ROWS), SpecError, "energy"),
        (lambda: small(negatives="nce").fit(ROWS), SpecError, "negatives"),
        (lambda: RBM(0), SpecError, "hidden must be a positive integer"),
        (lambda: PCD(1, chains=0), SpecError, "chains must be a positive integer"),
        (lambda: CD(0), SpecError, "steps must be a positive integer"),
        (lambda: small().fit(ROWS, ROWS[:, 0]), DataError, "EnergyModel takes no condition"),
        (lambda: small().fit(ROWS + 0.5), DataError, "0|1"),
        (lambda: small().fit(np.where(ROWS > 0, np.nan, ROWS)), DataError, "EnergyModel cannot marginalise"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
