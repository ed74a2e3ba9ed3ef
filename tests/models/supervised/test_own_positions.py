"""Targets of ragged rows at positions of their own: a network that halves a sequence, one that answers twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score
from torch import nn

import likely
from likely import Classifier, Regressor, priors
from likely.core.errors import DataError, SpecError
from likely.data.rows import Ragged
from likely.inference import HMC, MAP, Distill, Ensemble, Laplace, PACBayes, Variational
from likely.optim import Adam

QUICK = MAP(Adam(0.03), epochs=40, batch_size=16)
WHOLE = MAP(Adam(0.03), epochs=20, batch_size=None)
PROPER = priors.Normal(1.0, biases=priors.Normal(1.0))


class Halved(nn.Module):
    """A convolution of stride 2: ⌈t/2⌉ answers for t steps, of padded sequences or of a dense tensor."""

    def __init__(self, size=1, width=6):
        super().__init__()
        self.convolution = nn.Conv1d(2, width, kernel_size=3, stride=2, padding=1)
        self.head = nn.Linear(width, size)

    def out_lengths(self, lengths):
        return (lengths + 1) // 2

    def forward(self, x):
        steps = x.padded()[0] if isinstance(x, Ragged) else x
        answers = self.head(torch.tanh(self.convolution(steps.mT).mT))
        return Ragged.from_padded(answers, self.out_lengths(x.lengths)).values if isinstance(x, Ragged) else answers


class Twice(nn.Module):
    """Two answers per row, whatever its length, one row after the other."""

    def __init__(self, size=1):
        super().__init__()
        self.first, self.last = nn.Linear(2, size), nn.Linear(2, size)

    def out_lengths(self, lengths):
        return torch.full_like(lengths, 2)

    def forward(self, x):
        ends = x.offsets[1:] - 1
        return torch.stack([self.first(x.values[x.offsets[:-1]]), self.last(x.values[ends])], 1).flatten(0, 1)


def halves(X):
    """The sum of the first column over each pair of steps."""
    return [np.add.reduceat(row[:, 0], np.arange(0, len(row), 2)) for row in X]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, 2)) for t in rng.integers(1, 9, size=60)]
    return X, halves(X)


@pytest.fixture
def model(rows):
    return Regressor(network=Halved(), inference=QUICK, random_state=0).fit(*rows)


def test_every_answer_has_the_lengths_of_the_targets(rows, model):
    X, y = rows
    lengths = [len(row) for row in y]
    total = sum(lengths)
    assert [len(row) for row in model.predict(X)] == lengths
    assert all([len(row) for row in bound] == lengths for bound in model.predict_interval(X))
    assert [row.shape for row in model.sample(X, 3, random_state=0)] == [(3, length) for length in lengths]
    assert model.predict_dist(X).batch_shape == (total,)
    assert model.log_prob(X, y).shape == (len(X),)
    assert model.score(X, y) > 0.5
    labels = [(row > 0).astype(int) for row in y]
    classifier = Classifier(network=Halved(), inference=QUICK, random_state=0).fit(X, labels)
    assert [row.shape for row in classifier.predict_proba(X)] == [(length, 2) for length in lengths]
    right = np.concatenate(classifier.predict(X)) == np.concatenate(labels)
    assert classifier.score(X, labels) == pytest.approx(right.mean())
    assert right.mean() > 0.8


def test_log_probabilities_add_up_over_the_targets_of_a_row(rows, model):
    X, y = rows
    alone = model.predict_dist(X).log_prob(torch.tensor(np.concatenate(y), dtype=torch.float32)).numpy()
    by_row = [part.sum() for part in np.split(alone, np.cumsum([len(row) for row in y])[:-1])]
    np.testing.assert_allclose(model.log_prob(X, y), by_row, rtol=1e-4, atol=1e-5)
    gaps = [np.where(np.arange(len(row)) == 0, np.nan, row) for row in y]
    first = np.cumsum([0, *(len(row) for row in y)])[:-1]
    np.testing.assert_allclose(model.log_prob(X, gaps), np.array(by_row) - alone[first], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inference", [WHOLE, Ensemble(2, by=WHOLE)], ids=["map", "ensemble"])
def test_rows_of_one_length_are_the_dense_case(inference):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6, 2))
    y = np.stack(halves(X))
    weight = rng.uniform(0.5, 2.0, size=40)
    model = Regressor(network=Halved(), inference=inference, random_state=0)
    dense = model.fit(X, y, weight)
    answers, scores = dense.predict(X), dense.log_prob(X, y)
    ragged = Regressor(network=Halved(), inference=inference, random_state=0)
    ragged.fit(Ragged.of(list(X)), Ragged.of(list(y), "y"), weight)
    np.testing.assert_allclose(np.stack(ragged.predict(X)), answers, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ragged.log_prob(X, list(y)), scores, rtol=1e-3, atol=1e-3)
    assert ragged.score(X, list(y)) == pytest.approx(r2_score(np.ravel(y), np.ravel(ragged.predict(X))))


def test_weights_count_rows_with_all_their_targets(rows):
    X, y = rows
    weight = np.arange(len(X)) % 3
    times = np.repeat(np.arange(len(X)), weight)
    options = {"network": Halved(), "inference": WHOLE, "random_state": 0, "standardise": False}
    first = Regressor(**options).fit(X, y, weight)
    second = Regressor(**options).fit([X[i] for i in times], [y[i] for i in times])
    np.testing.assert_allclose(
        np.concatenate(first.predict(X)), np.concatenate(second.predict(X)), rtol=2e-3, atol=1e-3
    )


def test_rows_without_a_target_do_not_move_the_fit(rows):
    X, y = rows
    gaps = [np.full_like(row, np.nan) if i % 4 == 0 else row for i, row in enumerate(y)]
    moved = [1e3 * row if i % 4 == 0 else row for i, row in enumerate(X)]
    model = Regressor(network=Halved(), inference=WHOLE, random_state=0)
    first = np.concatenate(model.fit(X, gaps).predict(X))
    np.testing.assert_allclose(np.concatenate(model.fit(moved, gaps).predict(X)), first, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "inference",
    [
        HMC(chains=2, draws=20, warmup=20),
        Laplace(by=WHOLE),
        Variational(steps=5, draws=5, by=WHOLE),
        PACBayes(steps=5, draws=3, checks=5),
        MAP(Adam(0.03), epochs=5, validation=0.2, patience=2),
    ],
    ids=lambda inference: type(inference).__name__,
)
def test_other_inferences_fit_them(rows, inference):
    X, y = rows[0][:20], rows[1][:20]
    labels = [(row > 0).astype(int) for row in y]
    model = Classifier(network=Halved(), inference=inference, random_state=0, prior=PROPER).fit(X, labels)
    assert [len(row) for row in model.predict(X)] == [len(row) for row in y]
    assert np.isfinite(model.log_prob(X, labels)).all()


def test_validation_rows_and_a_teacher_have_them_too(rows, model):
    X, y = rows
    told = Regressor(network=Halved(), inference=Distill(model, by=QUICK), random_state=0).fit(X, y)
    assert told.score(X, model.predict(X)) > 0.5
    kept = MAP(Adam(0.03), epochs=5, validation=(X[:9], y[:9]), patience=2)
    assert np.isfinite(Regressor(network=Halved(), inference=kept, random_state=0).fit(X, y).score(X, y))


def test_a_fixed_number_of_answers_per_row():
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(t, 2)) for t in rng.integers(1, 7, size=50)]
    y = [[2 * row[0, 0], -row[-1, 1]] for row in X]
    model = Regressor(network=Twice(), inference=MAP(Adam(0.05), epochs=200), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=0.1)
    assert model.per_position_


def test_answers_in_blocks_are_those_of_all_rows_at_once(rows, model, monkeypatch):
    X, y = rows
    whole, scores = np.concatenate(model.predict(X)), model.log_prob(X, y)
    monkeypatch.setattr("likely.models.supervised.base.BLOCK", 1)
    monkeypatch.setattr("likely.models.supervised.base.LEAST", 7)
    np.testing.assert_allclose(np.concatenate(model.predict(X)), whole, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.log_prob(X, y), scores, rtol=1e-4, atol=1e-4)


def test_saved_and_loaded_the_answers_are_the_same(rows, model, tmp_path):
    X, y = rows
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely", network=Halved())
    np.testing.assert_array_equal(np.concatenate(loaded.predict(X)), np.concatenate(model.predict(X)))
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))


def test_a_function_that_builds_says_it_as_well(rows):
    X, y = rows

    def build(in_shape, out_features):
        return Halved(out_features)

    build.out_lengths = Halved().out_lengths
    assert Regressor(network=build, inference=QUICK, random_state=0).fit(X, y).score(X, y) > 0.5


def test_lengths_that_do_not_match_are_named(rows, model):
    X, y = rows
    wrong = [*y[:3], np.append(y[3], 0.0), *y[4:]]
    steps, wanted = len(X[3]), len(y[3])
    text = (
        rf"y\[3\] has {wanted + 1} entries, but for the {steps} steps of sequence 3 the network answers at "
        rf"{wanted} positions, as its out_lengths says: y\[3\] needs {wanted} entries\."
    )
    for ask in (model.log_prob, model.score, Regressor(network=Halved()).fit):
        with pytest.raises(DataError, match=text):
            ask(X, wrong)
    with pytest.raises(DataError, match=text):
        model.log_prob(X, Ragged(torch.tensor(np.concatenate(wrong)), Ragged.of(wrong, "y").offsets))
    with pytest.raises(DataError, match="y has 59 rows, but X has 60"):
        model.log_prob(X, Ragged.of(y[:-1], "y"))
    row = next(i for i, part in enumerate(X) if len(part) != len(y[i]))
    text = rf"y\[{row}\] has {len(y[row])} entries, but sequence {row} has {len(X[row])} steps\. A network that answers"
    with pytest.raises(DataError, match=text):
        Regressor(network="lstm(output='each')").fit(X, y)


@pytest.mark.parametrize("told", [torch.tensor([0.5]), torch.tensor([1, 2]), 3], ids=["float", "shape", "int"])
def test_out_lengths_that_are_none_are_refused(rows, told):
    module = Halved()
    module.out_lengths = lambda lengths: told
    with pytest.raises(SpecError, match="out_lengths must give an integer ≥ 0 for each of 60 lengths; it gave"):
        Regressor(network=module).fit(*rows)
