"""Threads do not meet: fits and answers of several threads, or processes, are those of one, to the bit.

Inferences come from the registry and models from `likely.models`: one without an example here fails the suite.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import joblib
import numpy as np
import polars
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from torch import nn

import likely
from likely import models
from likely.inference import MAP, MCDropout
from likely.inference.objective import Conditional, able
from likely.likelihoods import Normal, Poisson
from likely.networks import GRU, MLP, ConvNet
from likely.optim import Adam

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.LikelyWarning")

random = np.random.default_rng(0)
X = random.normal(size=(60, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.3 * random.normal(size=60)
LABELS = np.where(NUMBERS > 0, "high", "low")
COUNTS = random.poisson(3.0, size=(60, 12))
FRAME = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": NUMBERS})

QUICK = MAP(epochs=3, batch_size=20)
MODELS = {
    "Autoencoder": (lambda seed: models.Autoencoder(1, inference=QUICK, random_state=seed), X),
    "Autoregressive": (
        lambda seed: models.Autoregressive(network=MLP((8,)), inference=QUICK, random_state=seed),
        X,
    ),
    "BayesianNetwork": (
        lambda seed: models.BayesianNetwork([("a", "b")]),
        polars.DataFrame({"a": LABELS, "b": LABELS}),
    ),
    "Classifier": (
        lambda seed: models.Classifier(network=MLP((8,)), inference=MAP(epochs=3), random_state=seed),
        X,
        LABELS,
    ),
    "Detector": (
        lambda seed: models.Detector(ConvNet((2,)), strides=(4,), inference=QUICK, random_state=seed),
        X[:32].reshape(6, 4, 4),
        [[[0, 0, 4, 4]], [[1, 1, 3, 4]], [], [], [], []],
    ),
    "Diffusion": (
        lambda seed: models.Diffusion(MLP((8,)), steps=10, inference=QUICK, random_state=seed),
        X,
    ),
    "EnergyModel": (lambda seed: models.EnergyModel(inference=QUICK, random_state=seed), (X > 0).astype(float)),
    "FactorAnalysis": (lambda seed: models.FactorAnalysis(1, random_state=seed), X),
    "Flow": (lambda seed: models.Flow(layers=2, network=MLP((8,)), inference=QUICK, random_state=seed), X),
    "Forecaster": (lambda seed: models.Forecaster(lags=2, random_state=seed), [X[:30], X[30:]]),
    "FrameModel": (lambda seed: models.FrameModel(models.GaussianMixture(2, random_state=seed)), FRAME),
    "GAN": (
        lambda seed: models.GAN(MLP((8,)), MLP((8,)), penalty="spectral", inference=QUICK, random_state=seed),
        X,
    ),
    "GaussianMixture": (lambda seed: models.GaussianMixture(2, random_state=seed), X),
    "GaussianProcess": (lambda seed: models.GaussianProcess(random_state=seed), X, NUMBERS),
    "HiddenMarkov": (lambda seed: models.HiddenMarkov(Normal(), 2, random_state=seed), [X[:30], X[30:]]),
    "Hopfield": (lambda seed: models.Hopfield(random_state=seed), np.sign(X[:4])),
    "KMeans": (lambda seed: models.KMeans(2, random_state=seed), X),
    "KalmanFilter": (lambda seed: models.KalmanFilter(1, random_state=seed), [X[:30], X[30:]]),
    "KernelRidge": (lambda seed: models.KernelRidge(), X, NUMBERS),
    "LanguageModel": (
        lambda seed: models.LanguageModel(GRU(4), context=6, inference=QUICK, random_state=seed),
        ["to be or not to be", "that is the question", "so be it"],
    ),
    "LatentDirichlet": (lambda seed: models.LatentDirichlet(2, random_state=seed), COUNTS),
    "MaskedLanguageModel": (
        lambda seed: models.MaskedLanguageModel(GRU(4), context=6, inference=QUICK, random_state=seed),
        ["to be or not to be", "that is the question", "so be it"],
    ),
    "Mixture": (lambda seed: models.Mixture(Poisson(), 2, random_state=seed), COUNTS[:, :2]),
    "NaiveBayes": (lambda seed: models.NaiveBayes(random_state=seed), X, LABELS),
    "PCA": (lambda seed: models.PCA(2, random_state=seed), X),
    "Perceptron": (lambda seed: models.Perceptron(random_state=seed), X, LABELS),
    "Regressor": (
        lambda seed: models.Regressor(network=MLP((8,)), inference=MAP(epochs=3), random_state=seed),
        X,
        NUMBERS,
    ),
    "ScoreModel": (
        lambda seed: models.ScoreModel(MLP((8,)), noise_levels=4, inference=QUICK, random_state=seed),
        X,
    ),
    "Seq2Seq": (
        lambda seed: models.Seq2Seq(GRU(4), GRU(4), inference=QUICK, random_state=seed),
        ["to be or not to be", "that is the question", "so be it"],
        ["be", "question", "it"],
    ),
    "SupportVector": (lambda seed: models.SupportVector(random_state=seed), X, LABELS),
    "TableModel": (lambda seed: models.TableModel(models.Regressor(random_state=seed), target="y"), FRAME),
    "VAE": (lambda seed: models.VAE(Normal(), 1, MLP((4,)), MLP((4,)), inference=QUICK, random_state=seed), X),
    "WordVectors": (
        lambda seed: models.WordVectors(4, min_count=1, epochs=2, random_state=seed),
        ["the cat sat on the mat", "a dog sat on a log"],
    ),
}
"""A model with a seed, and what it is fitted to."""


class Noisy(nn.Module):
    """A module of the user's own that draws as it likes, in evaluation too."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(3, 4), nn.Dropout1d(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.linear(x) + torch.randn(4)).mean(1, keepdim=True)


def fitted(name, seed):
    make, *data = MODELS[name]
    return make(seed).fit(*data)


def answers(model, data):
    """What the model says of the rows it was fitted to, as bytes."""
    said = []
    first = (3,) if isinstance(model, models.Forecaster) else data[:1]
    for question, asked in (("log_prob", data), ("predict", first), ("recall", data[:1]), ("score_function", data)):
        if hasattr(model, question) and not (question == "predict" and isinstance(model, models.BayesianNetwork)):
            answer = getattr(model, question)(*asked)
            said += answer if isinstance(answer, list | tuple) else [answer]
    if not said:
        said = [model.transform(*data[:1]) if hasattr(model, "transform") else model.sample(5, random_state=0)]
    return [np.asarray(part).tobytes() for part in said]


def in_threads(work, count=8):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.parametrize("name", models.__all__)
def test_models_fitted_in_threads_are_those_fitted_one_by_one(name):
    data = MODELS[name][1:]
    together = in_threads(lambda seed: answers(fitted(name, seed), data), 4)
    assert together == [answers(fitted(name, seed), data) for seed in range(4)]
    assert all(together)


@pytest.mark.sensitive
@pytest.mark.parametrize("name", models.__all__)
def test_a_loaded_model_answers_with_the_same_bits(name, tmp_path):
    """Its arrays lie in memory as they did, so that the same rows take the same path through linear algebra."""
    data, model = MODELS[name][1:], fitted(name, 0)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert answers(loaded, data) == answers(model, data)
    for array in getattr(type(model), "_arrays", ()):
        one, two = vars(model).get(array), vars(loaded).get(array)
        assert one is None or one.strides == two.strides
        assert one is None or one.ctypes.data % 64 == two.ctypes.data % 64 == 0 or not one.size


@pytest.mark.parametrize("name", models.__all__)
def test_small_work_is_the_same_however_many_threads_are_allowed(name):
    """It gets one thread in fits and in answers: two would round otherwise, and wait for each other."""
    data, said = MODELS[name][1:], []
    for allowed in (1, 2):
        torch.set_num_threads(allowed)
        said.append(answers(fitted(name, 0), data))
        assert torch.get_num_threads() == allowed
    assert said[0] == said[1]


def regressor(inference, seed):
    dropout = 0.3 if isinstance(inference, MAP | MCDropout) else 0.0
    return models.Regressor(network=MLP((8,), dropout=dropout), inference=inference, random_state=seed)


def inferences():
    return {
        name: kind.example() for name, kind in able(Conditional(Normal())).items() if name not in ("Exact", "Newton")
    }


@pytest.mark.parametrize("name", inferences())
def test_inferences_in_threads_find_what_they_find_alone(name):
    def fit(seed):
        return answers(regressor(inferences()[name], seed).fit(X, NUMBERS), (X, NUMBERS))

    assert in_threads(fit, 4) == [fit(seed) for seed in range(4)]


@pytest.mark.parametrize("name", inferences())
def test_one_loaded_model_answers_threads_as_it_answers_one(name, tmp_path):
    regressor(inferences()[name], 0).fit(X, NUMBERS).save(tmp_path / "model.likely")
    model = likely.load(tmp_path / "model.likely")
    parts = [(X[i : i + 30], NUMBERS[i : i + 30]) for i in range(8)]
    alone = [answers(model, part) for part in parts]
    together = in_threads(lambda i: [answers(model, parts[i]) for _ in range(10)])
    assert all(answer == alone[i] for i in range(8) for answer in together[i])


def test_a_module_of_ones_own_draws_from_the_fit_and_from_the_call():
    network, before = Noisy(), torch.get_rng_state()

    def fit(seed):
        made = models.Classifier(network=network, inference=MAP(epochs=3), random_state=seed).fit(X, LABELS)
        return answers(made, (X, LABELS))

    assert in_threads(fit, 4) == [fit(seed) for seed in range(4)]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("prefer", ["threads", "processes"])
def test_jobs_of_joblib_find_what_one_finds(prefer):
    def fit(seed):
        return answers(regressor(MCDropout(3, by=MAP(epochs=2)), seed).fit(X, NUMBERS), (X, NUMBERS))

    jobs = [joblib.delayed(fit)(seed) for seed in range(2)]
    assert joblib.Parallel(2, prefer=prefer)(jobs) == [fit(seed) for seed in range(2)]


def test_a_search_with_two_jobs_finds_what_one_finds():
    model = regressor(MAP(epochs=2), 0)
    grid = {"network__hidden": [(4,), (6,)], "inference__optimizer": [Adam(0.01)]}
    one, two = (GridSearchCV(model, grid, cv=2, n_jobs=jobs).fit(X, NUMBERS) for jobs in (1, 2))
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert answers(one.best_estimator_, (X, NUMBERS)) == answers(two.best_estimator_, (X, NUMBERS))


class Watched(nn.Linear):
    """It notes how many threads it is asked with."""

    seen: ClassVar[list[int]] = []

    def forward(self, x):
        self.seen.append(torch.get_num_threads())
        return super().forward(x)


def test_every_answer_about_small_work_gets_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = models.Regressor(network=Watched(3, 1), inference=QUICK, random_state=0).fit(X, NUMBERS)
        Watched.seen.clear()
        model.predict_dist(X[:5]), model.predict(X[:5]), model.sample(X[:5]), model.log_prob(X[:5], NUMBERS[:5])
        assert set(Watched.seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
