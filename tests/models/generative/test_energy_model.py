"""EnergyModel: contrastive training finds a known distribution; normalisers, gaps, files, every inference."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import polars as pl
import pytest

import likely
from likely import EnergyModel
from likely.core.checkpoint import Checkpoint
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import MAP
from likely.inference.objective import RowDensity, able
from likely.models.generative import CD, NCE, PCD, RBM, Langevin
from likely.networks import MLP, ConvNet
from likely.optim import Adam, Cosine

STATES = np.array(list(itertools.product([0, 1], repeat=4)))
TRUE = np.exp(2.0 * (STATES[:, 0] == STATES[:, 1]) + 1.5 * (STATES[:, 2] != STATES[:, 3]))
TRUE /= TRUE.sum()
ROWS = STATES[np.random.default_rng(0).choice(16, 1000, p=TRUE)]
QUICK = MAP(Adam(0.03), epochs=60, batch_size=100, schedule=Cosine())


def small(**options):
    given = {"energy": RBM(6), "negatives": PCD(2, chains=200), "inference": QUICK, "random_state": 0}
    return EnergyModel(**given | options)


NUMBERS = np.random.default_rng(0).normal(size=(60, 2))


def tilted(negatives="auto", energy=MLP((8,)), inference=QUICK, **options):  # noqa: B008
    return EnergyModel(energy, negatives, inference=inference, random_state=0, **options)


# --- binary rows ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("negatives", [PCD(2, chains=200), CD(5), NCE(10)])
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


def test_the_normaliser_that_nce_learns_is_that_of_the_energy():
    """log Z is a parameter among others, and ends near the sum over all states."""
    model = small(negatives=NCE(10)).fit(ROWS)
    assert float(model.posterior_.module_of(0).log_z) == pytest.approx(model.log_normaliser()[0][0], abs=0.1)


# --- rows of numbers ------------------------------------------------------------------------------------------------
CENTRES, PARTS, WIDTH = np.array([[-2.0, 0.0], [2.0, 1.0]]), np.array([0.7, 0.3]), 0.6


def two_groups(count, rng):
    """Rows of a mixture of two Normals."""
    return CENTRES[rng.choice(2, count, p=PARTS)] + WIDTH * rng.normal(size=(count, 2))


def log_density(x):
    squares = np.square(x[:, None] - CENTRES).sum(-1) / WIDTH**2
    return np.logaddexp.reduce(np.log(PARTS) - 0.5 * squares, axis=1) - np.log(2 * np.pi * WIDTH**2)


@pytest.mark.parametrize(("negatives", "epochs"), [(NCE(4), 40), (Langevin(5), 25)])
def test_a_network_learns_a_known_energy(negatives, epochs, seed):
    """KL(p ‖ model) below 0.1, where one Normal has 0.6; log p − log p̂ spreads by less than 0.4 over rows of p."""
    rng = np.random.default_rng(seed)
    rows, new = two_groups(2000, rng), two_groups(1000, rng)
    training = MAP(Adam(5e-3), epochs=epochs, batch_size=100, schedule=Cosine())
    model = tilted(negatives, MLP((32, 32), activation="silu"), training).fit(rows)
    gap = log_density(new) - model.log_prob(new, draws=50)
    assert abs(gap.mean()) < 0.1
    assert gap.std() < 0.4
    drawn = model.sample(1000, random_state=seed)
    assert (drawn[:, 0] > 0).mean() == pytest.approx(0.3, abs=0.15)
    assert log_density(drawn).mean() == pytest.approx(log_density(new).mean(), abs=0.5)
    filled = model.impute([[np.nan, 1.0], [2.0, np.nan]], draws=100, random_state=seed)
    assert filled[:, 1, 1].mean() == pytest.approx(1.0, abs=0.4)  # the other group is 7 standard deviations off


def test_log_prob_of_a_network_is_an_estimate_with_an_error():
    model = tilted(NCE(), inference=MAP(epochs=2)).fit(NUMBERS)
    assert model.log_prob_kind_ == "estimate"
    value, error = model.log_prob(NUMBERS[:3], return_error=True, draws=20)
    log_z, its_error = model.log_normaliser(draws=20)
    np.testing.assert_allclose(value, -model.free_energy(NUMBERS[:3]) - log_z)
    np.testing.assert_allclose(error, np.repeat(its_error, 3))


def test_images_tables_and_text_are_taken():
    images = np.random.default_rng(0).normal(size=(12, 1, 6, 6))
    model = tilted(Langevin(2, chains=8), ConvNet((2,), hidden=(2,)), MAP(epochs=1), steps=4).fit(images)
    assert model.sample(3).shape == (3, 1, 6, 6)
    frame = pl.DataFrame(NUMBERS, schema=["a", "b"])
    new = tilted("nce(2)", "mlp(hidden=[4])", MAP(epochs=1), steps=4).fit(frame).sample(3, {"a": 0.5})
    assert new.columns == ["a", "b"]
    assert new["a"].to_list() == [0.5] * 3


def test_a_constant_column_is_named():
    with pytest.warns(LikelyWarning, match="Column 1 of X has one value in all rows"):
        tilted(NCE(1), inference=MAP(epochs=1)).fit(np.column_stack([NUMBERS[:, 0], np.ones(60)]))


@pytest.mark.parametrize("make", [lambda: small(), lambda: tilted(Langevin(2, chains=8))])
def test_a_killed_fit_resumes_to_the_same_bits(make, tmp_path):
    """Chains and the size of their steps are kept with the rest."""

    def killed(event):
        if event.epoch == 1:
            raise KeyboardInterrupt

    short = MAP(Adam(0.01), epochs=3, batch_size=20)
    path = Checkpoint(str(tmp_path / "e.ckpt"), seconds=0)
    with pytest.raises(KeyboardInterrupt):
        make().set_params(inference=short.replace(checkpoint=path, callbacks=(killed,))).fit(ROWS[:60])
    again = make().set_params(inference=short.replace(checkpoint=path)).fit(ROWS[:60])
    whole = make().set_params(inference=short).fit(ROWS[:60])
    np.testing.assert_array_equal(again.free_energy(STATES), whole.free_energy(STATES))


SCRIPT = """
import numpy as np
from likely import EnergyModel
from likely.inference import MAP
from likely.models.generative import PCD, RBM, Langevin
from likely.networks import MLP

rows = np.random.default_rng(0).random((40, 3))
asked = {"inference": MAP(epochs=3, batch_size=10), "random_state": 0}
fits = {
    "machine": EnergyModel(RBM(2), PCD(1, chains=8), **asked).fit(rows > 0.5),
    "network": EnergyModel(MLP((4,)), Langevin(2, chains=8), **asked).fit(rows),
}
answers = {name: model.free_energy(rows > 0.5 if name == "machine" else rows) for name, model in fits.items()}
"""


def test_two_processes_fit_together(by_processes):
    """Both end with the same model, near that of one process: chains are drawn apart, rows are shared."""
    alone, first, second = by_processes(SCRIPT)
    for name, energies in alone.items():
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], energies, atol=0.2)


# --- every inference, files, what is refused ------------------------------------------------------------------------
EVERY = able(RowDensity("EnergyModel", "bound", random=True))


@pytest.mark.parametrize("name", EVERY)
def test_every_inference_of_a_bound_fits_it(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = small(energy=RBM(2), negatives=PCD(1, chains=8), inference=EVERY[name].example()).fit(ROWS[:20])
    assert np.isfinite(model.log_prob(ROWS[:5])).all()
    assert set(np.unique(model.sample(3, random_state=0))) <= {0.0, 1.0}


@pytest.mark.parametrize("negatives", [Langevin(2, chains=8), NCE(1)])
def test_every_inference_of_a_bound_fits_a_network(negatives):
    for inference in EVERY.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LikelyWarning)
            model = tilted(negatives, MLP((2,)), inference=inference.example(), steps=4).fit(NUMBERS[:20])
        assert np.isfinite(model.free_energy(NUMBERS[:5])).all(), inference
        assert np.isfinite(model.sample(3, random_state=0)).all(), inference


@pytest.mark.parametrize("make", [lambda: small(), lambda: tilted(Langevin(2)), lambda: tilted(NCE())])
def test_a_file_gives_the_same_answers(make, tmp_path):
    model = make().set_params(inference=MAP(epochs=1)).fit(ROWS)
    model.save(tmp_path / "e.likely")
    again = likely.load(tmp_path / "e.likely")
    np.testing.assert_array_equal(again.log_prob(STATES), model.log_prob(STATES))
    np.testing.assert_array_equal(again.sample(4, random_state=0), model.sample(4, random_state=0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: small(energy="machine").fit(ROWS), SpecError, r"energy must be RBM\(hidden\) or a network: Unknown"),
        (lambda: small(energy=3).fit(ROWS), SpecError, r"energy must be RBM\(hidden\) or a network"),
        (lambda: small(negatives="gibbs").fit(ROWS), SpecError, "negatives"),
        (lambda: small(negatives=Langevin()).fit(ROWS), SpecError, r"RBM\(hidden=6\) is one of binary rows: use PCD"),
        (lambda: small(steps=0).fit(ROWS), SpecError, "steps must be a positive integer"),
        (lambda: RBM(0), SpecError, "hidden must be a positive integer"),
        (lambda: PCD(1, chains=0), SpecError, "chains must be a positive integer"),
        (lambda: CD(0), SpecError, "steps must be a positive integer"),
        (lambda: small().fit(ROWS, ROWS[:, 0]), DataError, "EnergyModel takes no condition"),
        (lambda: small().fit(ROWS + 0.5), DataError, "0|1"),
        (
            lambda: tilted().fit(pl.DataFrame({"a": ["x", "y"]})),
            DataError,
            "Column 'a' is text, and a network's energy",
        ),
        (lambda: tilted().fit([[0.0, np.nan], [1.0, 2.0]]), DataError, "EnergyModel cannot marginalise"),
        (lambda: tilted().fit([[0.0, 1.0]]), DataError, "EnergyModel needs 2 rows or more"),
        (lambda: tilted(energy=ConvNet((4,))).fit(np.zeros((4, 1, 1, 1))), SpecError, "ConvNet"),
        (lambda: small().fit(np.where(ROWS > 0, np.nan, ROWS)), DataError, "EnergyModel cannot marginalise"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_hidden_units_are_drawn_with_their_rows(seed):
    """Given a row they are Bernoulli, σ(c + Wᵀx): both sums are within 5 standard deviations, but for 1 of 10⁶
    seeds.
    """
    rows = np.repeat([[0, 0, 1], [1, 1, 0]], 50, axis=0)
    model = EnergyModel(RBM(2), inference=MAP(Adam(0.05), epochs=20), random_state=seed).fit(rows)
    x, hidden = model.sample(2000, random_state=seed, return_hidden=True)
    assert hidden.shape == (2000, 2)
    assert set(np.unique(hidden)) <= {0.0, 1.0}
    np.testing.assert_array_equal(x, model.sample(2000, random_state=seed))
    machine = model.posterior_.module.energy
    weight, bias = machine.weight.detach().numpy(), machine.hidden_bias.detach().numpy()
    mean = 1 / (1 + np.exp(-(x @ weight + bias)))
    assert (np.abs((hidden - mean).sum(0)) < 5 * np.sqrt((mean * (1 - mean)).sum(0))).all()
    network = EnergyModel(MLP((4,)), inference=MAP(epochs=1), random_state=0).fit(rows + 0.5 * rows[::-1])
    assert network.sample(3, random_state=0, return_hidden=True).shape == (3, 3)  # it has none
