"""Raw columns: a network standardises its inputs itself, and integers that it takes as they are stay exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.data.graph import Graph
from likely.inference import MAP, Ensemble, Laplace, PACBayes, Variational
from likely.likelihoods import Gamma, Normal, StudentT
from likely.networks import GCN, GRU, LSTM, MLP, ConvNet, Linear, Transformer
from likely.optim import Adam

QUICK = MAP(Adam(0.01), epochs=30)


@pytest.fixture(scope="module")
def table():
    """Columns in very different units, as tables have them."""
    rng = np.random.default_rng(0)
    X = rng.normal((2000.0, 0.0, -40.0), (300.0, 1e-3, 8.0), (120, 3))
    z = (X - X.mean(0)) / X.std(0)
    return X, np.sin(z[:, 0]) + z[:, 1] * z[:, 2] + 0.05 * rng.normal(size=120)


def inputs_of(model):
    return model.posterior_.module.inputs


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
def test_raw_columns_are_as_good_as_standardised_ones(table, inference):
    X, y = table
    by_hand = StandardScaler().fit_transform(X)
    raw = Regressor(network=MLP((16,)), inference=inference, random_state=0).fit(X, y)
    hand = Regressor(network=MLP((16,)), inference=inference, random_state=0, standardise=False).fit(by_hand, y)
    assert np.allclose(raw.predict(X), hand.predict(by_hand), atol=0.02 * y.std())
    assert inputs_of(hand) is None


@pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer])
def test_real_tables_need_no_scaler(load):
    """Rows alternate between training and test; the same network learns the same from both forms."""
    options = {"scaled": False} if load is load_diabetes else {}
    X, y = load(return_X_y=True, **options)
    estimator = Regressor if load is load_diabetes else Classifier
    model = estimator(network=MLP((16,)), inference=QUICK, random_state=0)
    by_hand = StandardScaler().fit(X[::2]).transform(X)
    raw, hand = (model.fit(rows[::2], y[::2]).score(rows[1::2], y[1::2]) for rows in (X, by_hand))
    assert raw > hand - 0.03
    assert raw > (0.3 if load is load_diabetes else 0.9)


@pytest.mark.parametrize("inference", [Variational.example(), Laplace.example(), PACBayes.example()], ids=type)
def test_every_kind_of_posterior_answers_in_raw_units(table, tmp_path, inference):
    X, y = table
    labels = (y > 0).astype(int)
    model = Classifier(network=MLP((4,), activation="tanh"), inference=inference, random_state=0).fit(X, labels)
    assert inputs_of(model) is not None
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert np.allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-5)


def test_heavy_tails_go_to_the_file_and_back(tmp_path):
    rng = np.random.default_rng(0)
    X = np.c_[rng.lognormal(3.0, 2.0, 300), rng.normal(size=300)]
    X[7, 1] = 1e6
    y = np.log(X[:, 0])
    model = Regressor(network=MLP((16,)), inference=MAP(Adam(0.01), epochs=60), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "model")
    assert np.array_equal(likely.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("likelihood", [Normal(), StudentT(), Gamma()], ids=str)
@pytest.mark.parametrize("power", [-20, 20])
def test_networks_at_their_defaults_know_no_unit_of_the_targets(table, likelihood, power):
    """Of y in other units the answers and the constants are the same, in those units: rounding is all that differs."""
    X, y = table
    y = y if likelihood.link == "identity" else np.exp(y)
    unit = 2.0**power
    one, other = (Regressor(likelihood, MLP((16,)), random_state=0).fit(X, own) for own in (y, unit * y))
    assert np.allclose(other.predict(X), unit * one.predict(X), rtol=0, atol=0.05 * unit * y.std())
    of_unit = unit if likelihood.link == "identity" else 1.0
    for name, value in one.constants_.items():
        assert other.constants_[name] == pytest.approx(of_unit * value, rel=0.1)


def test_linear_models_keep_raw_coefficients(table):
    X, y = table
    for network in (Linear(), MLP(())):
        model = Regressor(network=network).fit(X, y)
        assert inputs_of(model) is None
        design = np.c_[np.ones(len(X)), X]
        assert np.allclose(model.coef_, np.linalg.lstsq(design, y, rcond=None)[0][1:], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("network", "make", "shape"),
    [
        (ConvNet((2,), hidden=()), lambda rng: rng.normal(100.0, 9.0, (20, 3, 6, 6)), (3, 1, 1)),
        (GRU(2), lambda rng: [rng.normal(50.0, 5.0, (1 + i % 4, 2)) for i in range(20)], (2,)),
        (GRU(2), lambda rng: rng.normal(50.0, 5.0, (20, 7)), (1,)),
        (Transformer(4, 2, 1), lambda rng: rng.normal(50.0, 5.0, (20, 7, 3)), (3,)),
        (
            GCN((2,), level="graph"),
            lambda rng: [Graph(rng.normal(9.0, 2.0, (3, 2)), [[0, 1], [1, 2]]) for _ in range(20)],
            (2,),
        ),
        (MLP((2,)), lambda rng: rng.normal(100.0, 9.0, (20, 3, 6, 6)), (108,)),
    ],
    ids=["images", "sequences", "numbers", "steps", "graphs", "flattened"],
)
def test_channels_and_features_are_standardised(network, make, shape):
    X = make(np.random.default_rng(0))
    model = Regressor(network=network, inference=MAP(epochs=1), random_state=0).fit(X, np.arange(20.0))
    assert inputs_of(model).centre.shape == shape


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_tokens_are_never_standardised(dtype):
    X = np.random.default_rng(0).integers(0, 50, (20, 5)).astype(dtype)
    for network in (LSTM(2, tokens=50), Transformer(4, 2, 1, tokens=50)):
        model = Classifier(network=network, inference=MAP(epochs=1), random_state=0).fit(X, np.arange(20) % 2)
        assert inputs_of(model) is None


def test_weights_of_rows_count_in_the_units(table):
    X, y = table
    weight = np.r_[np.ones(60), np.zeros(60)]
    model = Regressor(network=MLP((2,)), inference=MAP(epochs=1), random_state=0).fit(X, y, sample_weight=weight)
    assert np.allclose(inputs_of(model).centre.numpy(), X[:60].mean(0), rtol=1e-4, atol=1e-4)


def test_rounding_that_hides_a_column_is_said():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=40), 1e8 + rng.normal(size=40)]
    with pytest.warns(ApproximationWarning, match="Column 1 of X varies by about .* around 1e"):
        Regressor(network=MLP((2,)), inference=MAP(epochs=1), random_state=0).fit(X, rng.normal(size=40))


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
def test_a_typo_in_a_new_row_moves_its_answer_by_less_than_it_would(table, inference, tmp_path):
    X, y = table
    network = MLP((16,), activation="identity")  # a plane in what it sees, wherever that is
    model = Regressor(network=network, inference=inference, random_state=0).fit(X, y)
    step = X[:, 0].std()
    rows = X[[0, 0, 0]]
    rows[:, 0] = X[:, 0].max() + 2 * step, X[:, 0].max() + 3 * step, 10 * X[0, 0]  # a digit too many
    before, at, typo = model.predict(rows)
    assert at - before > 0.1
    assert typo - at == pytest.approx((at - before) * (rows[2, 0] - rows[1, 0]) / step / 10, rel=1e-3)
    model.save(tmp_path / "model.likely")
    assert np.array_equal(likely.load(tmp_path / "model.likely").predict(rows), model.predict(rows))


def test_standardise_is_true_or_false(table):
    with pytest.raises(SpecError, match="standardise='yes' must be True or False"):
        Regressor(network=MLP((2,)), standardise="yes").fit(*table)


class Parity(nn.Module):
    """Learns two numbers, for even and for odd rows; a rounded integer has lost its parity."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 1)

    def forward(self, x):
        return self.table(x[:, 0] % 2)


def test_integers_beyond_float32_reach_the_network_exactly():
    X = 2**24 + np.arange(40).reshape(-1, 1)
    y = X[:, 0] % 2 * 10.0
    model = Regressor(network=Parity(), inference=MAP(Adam(0.1), epochs=100), random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1.0
    assert np.abs(model.predict(X.astype(np.float64)) - y).max() < 1.0
    with pytest.raises(DataError, match=r"X has the number 0\.5; the model was fitted on integers"):
        model.predict([[0.5]])


def test_integers_of_a_table_are_numbers():
    X = np.random.default_rng(0).integers(1000, 9000, (60, 2))
    training = MAP(Adam(0.05), epochs=100)
    model = Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, X[:, 0] / 1000.0)
    assert model.score(X, X[:, 0] / 1000.0) > 0.8
    assert not model.plan_.integer
    assert torch.is_floating_point(inputs_of(model).centre)
