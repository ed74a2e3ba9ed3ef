"""From specs to the module: what `plan` decides, networks of one's own, and units of the target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.inference import MAP, Ensemble
from likely.likelihoods import Bernoulli, Categorical, Gamma, Normal, StudentT, Target
from likely.models.supervised.build import Plan, baseline, plan
from likely.networks import LSTM, MLP, Linear, as_network
from likely.optim import Adam

QUICK = MAP(Adam(0.02), epochs=30, batch_size=None)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=80)


def test_plans_follow_what_the_network_gives():
    """(in_shape, out_features, positions that are unfolded, flatten, learned constants, linear)."""
    network, one, four = Linear(), Target(), Target(classes=4)
    assert plan(network, Normal(), one, (3,), ()) == Plan((3,), 1, (), False, 1, True)
    assert plan(network, Normal(scale=1.0), one, (3,), ()) == Plan((3,), 1, (), False, 0, True)
    assert plan(network, Normal(scale="input"), one, (3,), ()) == Plan((3,), 2, (), False, 0, True)
    assert plan(network, Categorical(), four, (3,), ()) == Plan((3,), 4, (), False, 0, True)
    assert plan(MLP((5,)), Normal(), one, (3,), ()) == Plan((3,), 1, (), False, 1, False, (3,))
    # a token each; all tokens from a flat row; one target from many tokens; pixels from a whole image
    assert plan(network, Normal(), one, (7, 3), (7,)) == Plan((7, 3), 1, (), False, 1, True)
    assert plan(network, Categorical(), four, (3,), (7,)) == Plan((3,), 28, (7,), False, 0, True)
    assert plan(network, Normal(), one, (7, 3), ()) == Plan((21,), 1, (), True, 1, True)
    assert plan(network, Bernoulli(), Target(classes=2), (2, 5, 6), (5, 6)) == Plan((60,), 30, (5, 6), True, 0, True)


def test_plans_go_to_json_and_back():
    made = plan(MLP((5,)), Normal(), Target(), (2, 3), (4,))
    assert Plan.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)),
        lambda in_shape, out_features: nn.Sequential(nn.Linear(in_shape[-1], 8), nn.ReLU(), nn.Linear(8, out_features)),
        nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.LazyLinear(1)),
        nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1)),
    ],
    ids=["module", "function", "lazy", "batch norm"],
)
@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
def test_a_network_of_ones_own_fits_and_is_left_as_it_was(data, network, inference, tmp_path):
    X, y = data
    before = repr(network), [p.clone() for p in parameters(network)]
    model = Regressor(network=network, inference=inference, random_state=0).fit(X, y)
    assert model.score(X, y) > Regressor(network=network, inference=MAP(epochs=1), random_state=0).fit(X, y).score(X, y)
    np.testing.assert_array_equal(model.predict(X), model.fit(X, y).predict(X))
    assert repr(network) == before[0]
    assert all(torch.equal(a, b) for a, b in zip(before[1], parameters(network), strict=True))
    model.save(tmp_path / "own.likely")
    loaded = likely.load(tmp_path / "own.likely", network=network)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def parameters(network):
    known = network.parameters() if isinstance(network, nn.Module) else []
    return [p for p in known if not isinstance(p, nn.parameter.UninitializedParameter)]


def test_members_of_ones_own_network_start_apart(data):
    X, y = data
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    model = Regressor(network=network, inference=Ensemble(2, by=MAP(epochs=1)), random_state=0).fit(X, y)
    first, second = model.posterior_.parameters["network.0.weight"]
    assert not torch.allclose(first, second)


def test_a_linear_module_of_ones_own_is_solved_exactly(data):
    X, y = data
    expected = Regressor().fit(X, y).predict(X)
    for network in (nn.Linear(3, 1), nn.LazyLinear(1), lambda i, o: nn.Linear(i[-1], o)):
        np.testing.assert_allclose(Regressor(network=network).fit(X, y).predict(X), expected, rtol=1e-9)


def test_a_subclass_of_a_linear_layer_may_be_anything(data):
    class Squared(nn.Linear):
        def forward(self, x):
            return super().forward(x).square()

    X, y = data
    model = Regressor(network=Squared(3, 1), inference=QUICK, random_state=0).fit(X, np.abs(y))
    assert not model.plan_.linear
    raw = (model.predict(X) - float(model.posterior_.buffers["offset"])) / float(model.posterior_.buffers["unit"])
    assert (raw >= -1e-5).all()  # a square, in the unit of y from its baseline


class Gives(nn.Module):
    """A module that answers with a function of x."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.answer(x * self.weight)


def fails(x):
    raise AssertionError("needs 7 columns")


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            nn.Linear(3, 2),
            r"network gives outputs of shape \(2,\) for a row of shape \(3,\), where Normal\(\) needs \(1,\)",
        ),
        (Gives(lambda x: x.sum(1)), r"outputs of shape \(\) for a row of shape \(3,\), where Normal\(\) needs \(1,\)"),
        (
            nn.Linear(4, 1),
            r"network Linear cannot take rows of shape \(3,\): mat1 and mat2 shapes cannot be multiplied",
        ),
        (Gives(fails), r"network Gives cannot take rows of shape \(3,\): needs 7 columns"),
        (Gives(lambda x: (x, x)), "network must give a tensor with one entry for each row; for 2 rows it gave tuple"),
        (Gives(lambda x: x.sum()), r"network must give a tensor with one entry for each row; for 2 rows it gave \(\)"),
        (lambda i, o: None, "network: the function must return a torch.nn.Module; it returned a NoneType"),
        (nn.Linear, r"network=Linear is a class; give a module, Linear\(…\), or a function \(in_shape, out_features\)"),
        (MLP, r"network=MLP is a class; write network=MLP\(\)"),
        (MLP((10**9,)), r"MLP\(hidden=\(1000000000,\)\) would have 4,000,000,000 weights"),
    ],
    ids=["outputs", "squeezed", "inputs", "assertion", "tuple", "scalar", "nothing", "class", "spec class", "absurd"],
)
def test_networks_that_do_not_fit_are_refused_with_the_reason(data, network, message):
    with pytest.raises(SpecError, match=message):
        Regressor(network=network, inference=QUICK).fit(*data)


def test_a_network_without_parameters_has_nothing_to_learn(data):
    X, y = data
    network = nn.Sequential(nn.Flatten())
    with pytest.raises(SpecError, match="network Sequential has no parameters, so there is nothing to learn"):
        Classifier(network=network, inference=QUICK).fit(X[:, :1], y > 0)


def test_a_module_for_flat_rows_takes_tokens(data):
    X, y = data
    rows = X.reshape(80, 3, 1)
    np.testing.assert_allclose(
        Regressor(network=nn.Linear(3, 1)).fit(rows, y).predict(rows), Regressor().fit(X, y).predict(X), rtol=1e-9
    )


@pytest.mark.parametrize("likelihood", [Normal(), Normal(scale="input"), StudentT()], ids=repr)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_network_does_not_care_for_the_unit_of_the_target(data, likelihood, scale):
    """y ↦ s·y + c gives predictions s·f + c and densities less log s, up to float32 rounding."""
    X, y = data
    shift = 3 * scale
    model = Regressor(likelihood, MLP((8,)), inference=QUICK, random_state=0)
    plain, score = model.fit(X, y).predict(X), model.log_prob(X, y)
    scaled, scaled_score = model.fit(X, scale * y + shift).predict(X), model.log_prob(X, scale * y + shift)
    np.testing.assert_allclose((scaled - shift) / scale, plain, atol=1e-3)
    np.testing.assert_allclose(scaled_score + np.log(scale), score, atol=2e-2)


def test_targets_beyond_the_range_of_training_are_refused(data):
    X, y = data
    for scale in (1e-100, 1e100):
        with pytest.raises(DataError, match=r"y varies by about .*, beyond what float32 training can hold; rescale y"):
            Regressor(network=MLP((4,)), inference=QUICK).fit(X, scale * y)
        scaled = Regressor().fit(X, scale * y).predict(X)
        np.testing.assert_allclose(scaled / scale, Regressor().fit(X, y).predict(X), rtol=1e-9)


def test_the_baseline_is_the_estimate_without_x():
    y = torch.tensor([1.0, 2.0, 6.0, 9.0], dtype=torch.float64)
    offset, unit = baseline(Normal(), y, None, (), unfolded=False)
    np.testing.assert_allclose(offset, [y.mean(), y.std(correction=0).log()])
    np.testing.assert_allclose(unit, [y.std(correction=0), 1.0])
    assert baseline(Gamma(), y, None, (), unfolded=False)[1] is None  # log links have no unit


def test_the_baseline_leaves_out_what_has_no_weight():
    y = torch.cat([torch.ones(50_000), torch.tensor([4.0, 8.0])]).double()
    weight = torch.cat([torch.zeros(50_000), torch.ones(2)]).double()
    offset, unit = baseline(Normal(), y, weight, (), unfolded=False)
    np.testing.assert_allclose([offset[0], unit[0]], [6.0, 2.0])


def test_unfolded_positions_have_a_baseline_each():
    y = torch.tensor([[1.0, 10.0], [3.0, 30.0]], dtype=torch.float64)
    offset, unit = baseline(Normal(), y, None, (2,), unfolded=True)
    assert offset.shape == unit.shape == (2, 2)
    np.testing.assert_allclose(offset[:, 0], [2.0, 20.0])
    np.testing.assert_allclose(unit[:, 0], [1.0, 10.0])
    together, _ = baseline(Normal(), y, None, (2,), unfolded=False)
    np.testing.assert_allclose(together[0], 11.0)


def test_a_predictor_starts_at_the_baseline():
    offset = torch.tensor([2.0, 0.5])
    unit = torch.tensor([3.0, 1.0])
    linear = plan(Linear(), Normal(), Target(), (3,), ()).predictor(Linear(), offset, unit, seed=0)
    np.testing.assert_allclose(linear(torch.randn(4, 3)).detach(), offset.expand(4, 2))
    assert linear.unit is None  # its weights are in the target's own units
    network = plan(MLP((5,)), Normal(), Target(), (3,), ()).predictor(MLP((5,)), offset, unit, seed=0)
    x = torch.randn(4, 3)
    eta = network(x).detach()
    np.testing.assert_allclose(eta[:, 0], 2 + 3 * network.network(x).detach()[:, 0], rtol=1e-6)
    np.testing.assert_allclose(eta[:, 1], 0.5)


def test_functions_and_modules_are_networks():
    module = nn.Linear(2, 1)
    assert as_network(module).build((2,), 1) is not module


def test_a_network_that_does_not_fit_is_called_by_the_name_it_was_given():
    """LSTM(), not the class of layers that it builds."""
    with pytest.raises(SpecError, match=r"network LSTM cannot take sparse rows as rows"):
        Classifier(network=LSTM(4)).fit(csr_array(np.eye(6)), [0, 1, 0, 1, 0, 1])
