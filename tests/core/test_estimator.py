import inspect
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import likely
from likely import Classifier, Regressor, TableModel
from likely.core.errors import ModelFileError, SpecError
from likely.core.estimator import _MODELS, Estimator
from likely.core.files import read_file
from likely.inference import MAP, Ensemble, Exact, MCDropout, Newton
from likely.likelihoods import MultivariateNormal, Poisson, Product
from likely.likelihoods import Normal as NormalNoise
from likely.networks import MLP, Linear
from likely.optim import SGD, Adam
from likely.priors import Laplace, Normal, PerLayer

for room in likely.__dir__():
    getattr(likely, room)

PUBLIC = {
    name: cls for name, cls in _MODELS.items() if cls.__module__.startswith("likely.") and "__init__" in vars(cls)
}

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3))
NUMBERS = ROWS @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=40)
LABELS = np.where(NUMBERS + RNG.normal(size=40) > 0, "yes", "no")
FRAME = {"a": ROWS[:, 0].tolist(), "b": ROWS[:, 1].tolist(), "city": ["x", "y"] * 20, "y": NUMBERS.tolist()}


def _fitted(name):
    """A fitted model of each public class, and rows to ask it about; a class without an entry here fails the test."""
    points = {"a": FRAME["a"], "b": FRAME["b"]}
    signs, counts = np.sign(ROWS), np.round(np.exp(ROWS)).astype(int)
    codes = {"left": (ROWS[:, 0] > 0).tolist(), "right": (ROWS[:, 1] > 0).tolist()}
    special = {
        "BayesianNetwork": lambda cls: (cls((("left", "right"),)).fit(codes), codes),
        "Detector": lambda cls: (
            cls("conv_net([2])", strides=(4,), inference=MAP(epochs=1), random_state=0).fit(
                ROWS[:32].reshape(6, 4, 4), [[[0, 0, 4, 4]]] * 6
            ),
            ROWS[:32].reshape(6, 4, 4),
        ),
        "Forecaster": lambda cls: (cls(lags=2, random_state=0).fit(NUMBERS), 3),
        "FrameModel": lambda cls: (cls(likely.KMeans(2, random_state=0)).fit(points), points),
        "Hopfield": lambda cls: (cls(random_state=0).fit(signs[:3]), signs),
        "LanguageModel": lambda cls: (cls().fit(["one text", "two texts"]), ["one text", "two texts"]),
        "LatentDirichlet": lambda cls: (cls(2, random_state=0).fit(counts), counts),
        "MaskedLanguageModel": lambda cls: (
            cls("gru(3)", inference=MAP(epochs=1), random_state=0).fit(["one text", "two texts"]),
            ["one text", "two texts"],
        ),
        "Seq2Seq": lambda cls: (
            cls(inference=MAP(epochs=1), random_state=0).fit(["ab", "ba"], ["ba", "ab"]),
            ["ab", "a"],
        ),
        "Table": lambda cls: (cls().fit(FRAME), FRAME),
        "TableModel": lambda cls: (cls(Regressor(), target="y").fit(FRAME), FRAME),
        "TextColumn": lambda cls: (cls("city").fit(FRAME), FRAME),
        "WordVectors": lambda cls: (cls(4, min_count=1, random_state=0).fit(["a b a", "b a c"]), ["a", "c"]),
    }
    trained = {"inference": MAP(epochs=1), "random_state": 0}
    densities = ("Autoencoder", "Autoregressive", "Diffusion", "Flow", "GAN", "ScoreModel", "VAE")
    special |= dict.fromkeys(densities, lambda cls: (cls(**trained).fit(ROWS), ROWS))
    bits = (ROWS > 0).astype(float)
    special["EnergyModel"] = lambda cls: (cls(**trained).fit(bits), bits)
    cls = PUBLIC[name]
    labels = issubclass(cls, likely.models.Classifier) or name in ("NaiveBayes", "Perceptron", "SupportVector")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a perceptron on classes that overlap says so
        return special[name](cls) if name in special else (cls().fit(ROWS, LABELS if labels else NUMBERS), ROWS)


def _answer(model, rows):
    if isinstance(model, likely.BayesianNetwork):
        return model.log_prob(rows)
    verb = next((name for name in ("predict", "transform", "log_prob") if hasattr(model, name)), None)
    return np.asarray(model.sample(5, random_state=0) if verb is None else getattr(model, verb)(rows))


# --- every public model -----------------------------------------------------------------------------------------
def test_the_registry_knows_the_public_models():
    assert set(likely.__all__) - {"__version__", "formula", "load"} <= set(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_model_stores_its_arguments_and_nothing_else(name):
    cls = PUBLIC[name]
    needed = {
        "BayesianNetwork": {"edges": [("a", "b")]},
        "FrameModel": {"model": Regressor()},
        "TableModel": {"model": Regressor(), "target": "y"},
        "TextColumn": {"text": "city"},
    }
    given = needed.get(name, {})
    model = cls(**given)
    names = set(inspect.signature(cls.__init__).parameters) - {"self"}
    assert set(vars(model)) == names == set(model.get_params(deep=False))
    for argument, value in given.items():
        assert getattr(model, argument) is value


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_model_can_be_cloned_pickled_saved_and_loaded(name, tmp_path):
    model, rows = _fitted(name)
    expected = _answer(model, rows)
    unfitted = clone(model)
    assert str(unfitted.get_params()) == str(model.get_params())
    with pytest.raises(NotFittedError):
        unfitted.save(tmp_path / "never")
    assert not (tmp_path / "never").exists()
    np.testing.assert_array_equal(_answer(pickle.loads(pickle.dumps(model)), rows), expected)
    model.save(tmp_path / "a")
    loaded = likely.load(tmp_path / "a")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(_answer(loaded, rows), expected)
    assert str(loaded.get_params()) == str(model.get_params())
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


SUPERVISED = {
    "exact": (Regressor(), NUMBERS),
    "full": (Regressor(inference=Exact("full"), prior=Normal(2.0)), NUMBERS),
    "newton": (Regressor(likelihood=Poisson(), inference=Newton()), np.round(np.exp(NUMBERS / 3))),
    "map": (Regressor(network=MLP((4,), norm="batch"), inference=MAP(epochs=2, noise=0.1)), NUMBERS),
    "text": (Regressor(network="mlp([4])", inference="map(epochs=2)", prior="laplace(3)"), NUMBERS),
    "outputs": (Regressor(network=MLP((4,)), inference=MAP(epochs=2)), np.stack([NUMBERS, -NUMBERS], 1)),
    "vectors": (Regressor(MultivariateNormal(), MLP((4,)), inference=MAP(epochs=2)), np.stack([NUMBERS, -NUMBERS], 1)),
    "product": (Regressor(Product({"a": NormalNoise(), "b": Poisson()}), inference=MAP(epochs=2)),
                np.stack([NUMBERS, np.arange(40)], 1)),
    "layers": (Regressor(prior=PerLayer({"weight": Laplace(0.5)}), inference=Newton()), NUMBERS),
    "ensemble": (Regressor(network=MLP((4,)), inference=Ensemble(2, MAP(epochs=2))), NUMBERS),
    "dropout": (Regressor(network=MLP((4,), dropout=0.2), inference=MCDropout(3, MAP(epochs=2))), NUMBERS),
    "labels": (Classifier(), LABELS),
    "three": (Classifier(network=MLP((4,)), inference=MAP(epochs=2)), np.arange(40) % 3),
    "odd labels": (Classifier(), np.array([True, False] * 20)),
    "objects": (Classifier(), np.array(["a", "b"] * 20, dtype=object)),
    "floats": (Classifier(), np.array([0.0, 2.0] * 20)),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SUPERVISED))
def test_a_loaded_model_answers_as_the_saved_one(kind, tmp_path):
    model, target = SUPERVISED[kind]
    model = clone(model).set_params(random_state=0).fit(ROWS, target)
    model.save(tmp_path / "a")
    loaded = likely.load(tmp_path / "a")
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    assert loaded.predict(ROWS).dtype == model.predict(ROWS).dtype
    np.testing.assert_array_equal(loaded.log_prob(ROWS, target), model.log_prob(ROWS, target))
    assert loaded.posterior_.info == model.posterior_.info
    assert str(loaded.get_params()) == str(model.get_params())
    clone(loaded).fit(ROWS, target)


def test_column_names_are_kept(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    Regressor().fit(frame, NUMBERS).save(tmp_path / "a")
    loaded = likely.load(tmp_path / "a")
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_arguments_that_are_no_json_are_written_sensibly(tmp_path):
    model = Regressor(random_state=np.random.RandomState(0), device=torch.device("cpu")).fit(ROWS, NUMBERS)
    model.save(tmp_path / "a")
    loaded = likely.load(tmp_path / "a")
    assert (loaded.random_state, loaded.device) == (None, "cpu")
    Regressor(random_state=np.int64(7)).fit(ROWS, NUMBERS).save(tmp_path / "a")
    assert likely.load(tmp_path / "a").random_state == 7


def test_the_header_says_who_wrote_it(tmp_path):
    Regressor().fit(ROWS, NUMBERS).save(tmp_path / "a")
    header, _ = read_file(tmp_path / "a")
    assert header["version"] == likely.__version__
    assert header["model"] == "Regressor"
    assert header["params"]["network"] == {"spec": "network.Linear", **Linear().get_params()}


# --- code that a file cannot hold -------------------------------------------------------------------------------
def _module():
    return nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))


def _built(in_shape, out_features):
    return nn.Linear(in_shape[0], out_features)


@pytest.mark.parametrize(("network", "name"), [(_module(), "Sequential"), (_built, "function")])
def test_a_network_of_ones_own_is_given_again(network, name, tmp_path):
    model = Regressor(network=network, inference=MAP(epochs=2), random_state=0).fit(ROWS, NUMBERS)
    model.save(tmp_path / "a")
    with pytest.raises(ModelFileError, match=rf"its network is code \({name}\).*likely\.load\(path, network=…\)"):
        likely.load(tmp_path / "a")
    loaded = likely.load(tmp_path / "a", network=network)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    with pytest.raises(ModelFileError, match="does not fit its own specs"):
        likely.load(tmp_path / "a", network=nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1)))
    with pytest.raises(ModelFileError, match="network must be one of the network specs"):
        likely.load(tmp_path / "a", network=3)
    with pytest.raises(SpecError, match=r"load got 'netwrok', but Regressor has .*network"):
        likely.load(tmp_path / "a", network=network, netwrok=3)


def test_a_network_inside_a_model_of_tables_is_given_again(tmp_path):
    inner = Regressor(network=lambda shape, out: nn.Sequential(nn.Linear(shape[0], out)), inference=MAP(epochs=2))
    model = TableModel(inner, target="y").fit(FRAME)
    model.save(tmp_path / "a")
    with pytest.raises(ModelFileError, match="its network is code"):
        likely.load(tmp_path / "a")
    loaded = likely.load(tmp_path / "a", network=inner.network)
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))


def test_a_model_of_ones_own_joins_by_being_defined(tmp_path):
    class Constant(Estimator):
        def __init__(self, shift=0.0):
            self.shift = shift

        def fit(self, X, y=None):
            self.mean_ = float(np.mean(X)) + self.shift
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

        def _state(self):
            return {"mean": self.mean_}, {}

        def _restore(self, learned, tensors):
            self.mean_ = float(learned["mean"])

    Constant(shift=1.0).fit(ROWS).save(tmp_path / "a")
    loaded = likely.load(tmp_path / "a")
    assert (loaded.shift, loaded.mean_) == (1.0, float(np.mean(ROWS)) + 1.0)
    del _MODELS["Constant"]
    with pytest.raises(ModelFileError, match="holds a model 'Constant', which is not known here"):
        likely.load(tmp_path / "a")


def test_a_name_of_likely_cannot_be_taken():
    with pytest.raises(SpecError, match="Likely has a model named Regressor; give your class another name"):
        type("Regressor", (Estimator,), {"__module__": "mine"})
    assert _MODELS["Regressor"] is Regressor


def test_a_model_without_state_says_so():
    class _Silent(Estimator):
        def fit(self):
            self.fitted_ = True
            return self

    assert "_Silent" not in _MODELS
    with pytest.raises(NotImplementedError, match="_Silent must say its state"):
        _Silent().fit().save("never")
    with pytest.raises(NotImplementedError, match="_Silent must restore its state"):
        _Silent()._restore({}, {})


# --- scikit-learn's tools ---------------------------------------------------------------------------------------
def test_set_params_reaches_through_every_level():
    model = Regressor(network=MLP((8,)), inference=Ensemble(2, MAP(Adam(0.1))))
    assert model.set_params(network__hidden=[4, 4]) is model
    assert model.network == MLP((4, 4))
    model.set_params(inference__members=3, inference__by__optimizer__lr=0.5, inference__by__epochs=7)
    assert model.inference == Ensemble(3, MAP(Adam(0.5), epochs=7))
    model.set_params(inference=MAP(), inference__optimizer=SGD(), inference__optimizer__lr=0.3)
    assert model.inference == MAP(SGD(0.3))
    assert model.get_params()["inference__optimizer__lr"] == 0.3
    table = TableModel(Regressor(network=MLP((8,))), target="y").set_params(model__network__hidden=(2,), target="z")
    assert (table.model.network, table.target) == (MLP((2,)), "z")
    assert clone(model).get_params() == model.get_params()


def test_set_params_leaves_the_original_spec_alone():
    network = MLP((8,))
    first, second = Regressor(network=network), Regressor(network=network)
    first.set_params(network__hidden=(4,))
    assert second.network == network == MLP((8,))


def test_set_params_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"Invalid parameter 'netwrok' for estimator Regressor\. Valid.*'network'"):
        Regressor().set_params(netwrok=3)
    with pytest.raises(
        SpecError, match=r"Regressor\(inference='auto'\) is not a spec, so inference__epochs is not a parameter"
    ):
        Regressor().set_params(inference__epochs=3)
    with pytest.raises(SpecError, match="MLP has no argument 'width'; it has hidden"):
        Regressor(network=MLP()).set_params(network__width=3)
    with pytest.raises(SpecError, match=r"MLP\(hidden=\(0,\)\): hidden must be"):
        Regressor(network=MLP()).set_params(network__hidden=(0,))


def test_searches_and_pipelines_work():
    grid = {"regressor__prior__scale": [0.01, 10.0], "regressor__inference": [Exact(), Newton()]}
    pipeline = make_pipeline(StandardScaler(), Regressor(prior=Normal()))
    search = GridSearchCV(pipeline, grid, cv=3).fit(ROWS, NUMBERS)
    assert search.best_params_["regressor__prior__scale"] == 10.0
    assert search.best_estimator_[-1].prior == Normal(10.0)
    assert search.best_score_ > 0.95


def test_folds_are_fitted_in_parallel():
    scores = [cross_val_score(Regressor(prior=Normal(1.0)), ROWS, NUMBERS, cv=2, n_jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


def test_models_print_what_differs_from_the_defaults():
    assert repr(Regressor(network=MLP((8,)), random_state=0)) == "Regressor(network=MLP(hidden=(8,)), random_state=0)"
    assert isinstance(Regressor(), BaseEstimator)
