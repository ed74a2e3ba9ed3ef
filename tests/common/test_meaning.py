"""One meaning everywhere: what a word of the library means is the same in every model that has it.

The suite finds the models by itself; one without an example below fails. A new model joins by a line in `EXAMPLES`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from torch.distributions import Bernoulli, Categorical, Distribution

import likely
from likely import models
from likely.core.errors import DataError, LikelyWarning
from likely.core.estimator import _MODELS
from likely.inference import EM, MAP, Exact, VariationalBayes
from likely.likelihoods import Bernoulli as BernoulliLikelihood
from likely.likelihoods import Categorical as CategoricalLikelihood
from likely.likelihoods import Normal, Poisson
from likely.models.generative import DDIM, PCD, RBM
from likely.networks import GRU, MLP, ConvNet
from likely.priors import Normal as NormalPrior

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(0.0, 1.0, (20, 2)), RNG.normal(4.0, 1.0, (20, 2))])
NUMBERS = ROWS @ [1.0, -0.5] + 0.3 * RNG.normal(size=40)
LABELS = np.where((np.arange(40) < 20) ^ (np.arange(40) % 5 == 0), "a", "b")  # every fifth label is the other one
APART = np.where(ROWS.sum(1) > 4, "b", "a")
COUNTS = RNG.poisson(3.0, (12, 5))
SERIES = [RNG.normal(size=(steps, 2)).cumsum(0) for steps in (12, 9, 15, 7)]
SIGNS = np.where(RNG.random((3, 12)) < 0.5, -1, 1)
SCENES, BOXES = RNG.normal(size=(8, 8, 8)), [[[0, 0, 4 + i % 3, 5]] * (i > 2) for i in range(8)]
WORDS = ["to be or not to be", "that is the question", "be that as it may", "not to question it", "so be it"]
WEATHER = pl.DataFrame({"rain": ["no", "yes", "no", "no"] * 6, "wet": ["no", "yes", "no", "yes"] * 6})
HOUSES = pl.DataFrame({"area": ROWS[:, 0], "age": ROWS[:, 1], "price": NUMBERS})

SMALL = {"encoder": MLP((8,)), "decoder": MLP((8,)), "inference": MAP(epochs=30), "random_state": 0}
"""Networks of generative models, and their training."""
TRAINED = {"inference": MAP(epochs=3, batch_size=16), "random_state": 0}
CONVERGED = EM(max_iter=300, tol=1e-9)


@dataclass(frozen=True)
class Example:
    """A model, what it is fitted to, and which laws of rows hold for it."""

    make: Callable[[], Any]
    X: Any
    y: Any = None
    weighted: bool = True
    """Whether weights are repeats to 1e-4: not where the order of rows or a draw decides where a fit ends."""
    columns: bool = True
    """Whether rows are vectors of numbers, so that bad ones can be made by hand."""
    missing: bool = False
    """Whether NaN is a missing value."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `sample`."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (self.X,) if self.y is None else (self.X, self.y)


def tiny_chain(orders: int) -> Any:
    """An autoregressive model that is quick to fit."""
    quick = MAP(epochs=3, batch_size=16)
    return models.Autoregressive(network=MLP((4,)), orders=orders, inference=quick, random_state=0)


def tiny_flow(*layers: str) -> Any:
    """A flow that is quick to fit."""
    quick = MAP(epochs=3, batch_size=16)
    return models.Flow(*layers, layers=2, network=MLP((4,)), inference=quick, random_state=0)


EXAMPLES: dict[str, list[Example]] = {
    "Regressor": [
        Example(lambda: models.Regressor(random_state=0), ROWS, NUMBERS),
        Example(lambda: models.Regressor(prior=NormalPrior(1.0), inference=Exact("full")), ROWS, NUMBERS),
    ],
    "Classifier": [
        Example(lambda: models.Classifier(random_state=0), ROWS, LABELS),
        Example(lambda: models.Classifier(prior=NormalPrior(1.0)), ROWS, np.digitize(ROWS[:, 0], [0, 4])),
    ],
    "Perceptron": [Example(lambda: models.Perceptron(random_state=0), ROWS, APART, weighted=False)],
    "GaussianProcess": [
        Example(lambda: models.GaussianProcess(learn=False, likelihood=Normal(0.5), random_state=0), ROWS, NUMBERS),
        Example(lambda: models.GaussianProcess(likelihood=CategoricalLikelihood(), learn=False), ROWS, LABELS),
    ],
    "KernelRidge": [Example(lambda: models.KernelRidge(), ROWS, NUMBERS)],
    "SupportVector": [
        Example(lambda: models.SupportVector(probability=True, random_state=0), ROWS, LABELS, weighted=False),
        Example(lambda: models.SupportVector(epsilon=0.1), ROWS, NUMBERS),
    ],
    "NaiveBayes": [Example(lambda: models.NaiveBayes(random_state=0), ROWS, LABELS, missing=True)],
    "Mixture": [
        Example(lambda: models.Mixture(Normal(), 2, inference=CONVERGED, random_state=0), ROWS, missing=True),
        Example(lambda: models.Mixture(Poisson(), 1, random_state=0), pd.DataFrame(COUNTS, columns=[*"abcde"])),
    ],
    "GaussianMixture": [
        Example(lambda: models.GaussianMixture(2, inference=CONVERGED, random_state=0), ROWS, missing=True),
        Example(lambda: models.GaussianMixture(1, random_state=0), pl.DataFrame(ROWS, schema=["a", "b"])),
    ],
    "KMeans": [Example(lambda: models.KMeans(2, random_state=0), ROWS)],
    "PCA": [Example(lambda: models.PCA(1, random_state=0), ROWS, missing=True)],
    "FactorAnalysis": [
        Example(
            lambda: models.FactorAnalysis(1, inference=EM(max_iter=1000, tol=1e-9), random_state=0),
            RNG.normal(size=(40, 1)) * [1.0, 2.0, -1.0, 1.5] + 0.5 * RNG.normal(size=(40, 4)),
            missing=True,
        )
    ],
    "HiddenMarkov": [
        Example(
            lambda: models.HiddenMarkov(Normal(), 2, inference=CONVERGED, random_state=0),
            SERIES,
            weighted=False,  # where the first guess lies decides; `test_hidden_markov` starts both at one model
            columns=False,
            missing=True,
            options={"length": 6},
        )
    ],
    "KalmanFilter": [
        Example(
            lambda: models.KalmanFilter(
                transition=np.eye(2),
                observation=np.eye(2),
                transition_covariance=np.eye(2),
                initial_mean=np.zeros(2),
                initial_covariance=np.eye(2),
                inference=CONVERGED,
            ),
            SERIES,
            columns=False,
            missing=True,
            options={"length": 6},
        )
    ],
    "LatentDirichlet": [
        Example(
            lambda: models.LatentDirichlet(1, inference=VariationalBayes(max_iter=50), random_state=0),
            form,
            columns=False,
            options={"length": 8},
        )
        for form in (COUNTS, sparse.csr_array(COUNTS))
    ],
    "LanguageModel": [
        Example(
            lambda: models.LanguageModel(GRU(4), context=6, **TRAINED),
            WORDS,
            weighted=False,
            columns=False,
            options={"length": 6},
        ),
        Example(lambda: models.LanguageModel(random_state=0), WORDS, columns=False, options={"length": 6}),
    ],
    "MaskedLanguageModel": [
        Example(lambda: models.MaskedLanguageModel(GRU(4), context=6, **TRAINED), WORDS, weighted=False, columns=False)
    ],
    "Seq2Seq": [
        Example(
            lambda: models.Seq2Seq(GRU(4), GRU(4), **TRAINED),
            WORDS,
            [text[::-1] for text in WORDS],
            weighted=False,
            columns=False,
            options={"length": 6},
        )
    ],
    "BayesianNetwork": [
        Example(lambda: models.BayesianNetwork([("rain", "wet")], random_state=0), form, columns=False)
        for form in (WEATHER, pd.DataFrame(WEATHER.to_dict(as_series=False)), WEATHER.to_dicts())
    ],
    "Autoregressive": [
        Example(lambda: tiny_chain(1), ROWS, weighted=False, missing=True),
        Example(lambda: tiny_chain(2), pl.DataFrame({"a": ROWS[:, 0], "kind": LABELS}), weighted=False, columns=False),
    ],
    "Flow": [
        Example(lambda: tiny_flow("affine"), ROWS, weighted=False),  # batches see other rows where rows repeat
        Example(lambda: tiny_flow("spline", "autoregressive"), pl.DataFrame(ROWS, schema=["a", "b"]), weighted=False),
    ],
    "Forecaster": [
        Example(
            lambda: models.Forecaster(lags=2, transform="none", random_state=0),
            SERIES,
            columns=False,
            missing=True,
            options={"steps": 6},
        )
    ],
    "Detector": [
        Example(
            lambda: models.Detector(ConvNet((2,)), strides=(4,), **TRAINED),
            SCENES,
            BOXES,
            weighted=False,
            columns=False,
        )
    ],
    "Diffusion": [
        Example(lambda: models.Diffusion(MLP((4,)), steps=8, sampler=DDIM(4), **TRAINED), ROWS, weighted=False),
        Example(
            lambda: models.Diffusion(MLP((4,)), steps=8, sampler=DDIM(4), **TRAINED),
            pd.DataFrame(ROWS, columns=["a", "b"]),
            weighted=False,
        ),
    ],
    "EnergyModel": [
        Example(
            lambda: models.EnergyModel(RBM(3), PCD(1, chains=8), steps=20, **TRAINED),
            (ROWS > 1).astype(float),
            weighted=False,
        )
    ],
    "ScoreModel": [
        Example(lambda: models.ScoreModel(MLP((4,)), noise_levels=3, steps=4, **TRAINED), form, weighted=False)
        for form in (ROWS, pd.DataFrame(ROWS, columns=["a", "b"]))
    ],
    "GAN": [
        Example(lambda: models.GAN(MLP((4,)), MLP((4,)), latent=2, **TRAINED), ROWS, weighted=False),
        Example(
            lambda: models.GAN(MLP((4,)), MLP((4,)), latent=2, penalty="gradient", pack=2, **TRAINED),
            pl.DataFrame(ROWS, schema=["a", "b"]),
            weighted=False,
        ),
    ],
    "VAE": [
        Example(lambda: models.VAE(latent=1, **SMALL), ROWS, weighted=False, missing=True),
        Example(lambda: models.VAE(latent=2, **SMALL), pl.DataFrame(ROWS, schema=["a", "b"]), weighted=False),
    ],
    "Autoencoder": [Example(lambda: models.Autoencoder(1, **SMALL), ROWS, weighted=False, missing=True)],
    "WordVectors": [
        Example(
            partial(models.WordVectors, 4, objective=objective, min_count=1, epochs=2, random_state=0),
            ["the cat sat on the mat", "a dog sat on a log", "the cat and a dog ran"],
            weighted=False,  # a pair of weight 2 is one long step, not two
            columns=False,
        )
        for objective in ("skip_gram", "cbow", "log_bilinear", "glove")
    ],
    "Hopfield": [Example(lambda: models.Hopfield(random_state=0), SIGNS)],
    "TableModel": [
        Example(lambda: models.TableModel(models.Regressor(random_state=0), "price"), HOUSES, columns=False)
    ],
    "FrameModel": [
        Example(lambda: models.FrameModel(models.GaussianMixture(1, random_state=0)), form, columns=False, missing=True)
        for form in (HOUSES, pd.DataFrame(HOUSES.to_dict(as_series=False)))
    ],
}
CASES = [
    pytest.param(example, id=f"{name}{index}") for name, own in EXAMPLES.items() for index, example in enumerate(own)
]
BASES = {"Learned", "Labelled", "Supervised", "Averaged", "LinearGaussianModel", "KernelMachine"}
BASES |= {"Scored", "SparseClasses", "Table", "TextClasses", "TextColumn"}
"""What models are made of, and the encoder of tables: none is a model by itself."""


_FITTED: dict[int, Any] = {}


def fitted(example: Example, model: Any = None, **arguments: Any) -> Any:
    """The model of an example, fitted once for all laws; or another one, or one with weights."""
    if model is None and not arguments:
        if id(example) not in _FITTED:
            _FITTED[id(example)] = fitted(example, example.make())
        return _FITTED[id(example)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tiny data; what warns is tested where it warns
        return (example.make() if model is None else model).fit(*example.arguments, **arguments)


def heard(verb: Callable[[Any], Any], question: Any) -> tuple[Any, list[str]]:
    """An answer and its warnings: targets of so short a training may have no end."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", LikelyWarning)
        answer = verb(question)
    return answer, [str(one.message) for one in said]


def rows_of(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def as_rows(X: Any) -> np.ndarray:
    """Any table of draws as one array."""
    if sparse.issparse(X):
        return X.toarray()
    if isinstance(X, list):
        return np.array([[*row.values()] if isinstance(row, dict) else row for row in X])
    return X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)


def conditional(model: Any) -> bool:
    """Whether `sample` draws targets given rows."""
    return bool({"X", "frame", "sources"} & set(inspect.signature(model.sample).parameters))


def drawn(model: Any, example: Example, n: int = 3, **arguments: Any) -> np.ndarray:
    first = (example.X, n) if conditional(model) else (n,)
    return as_rows(model.sample(*first, **example.options, **arguments))


# --- who is here ------------------------------------------------------------------------------------------------------
def test_every_model_has_an_example():
    for name in models.__all__:
        getattr(models, name)  # which registers it
    ours = {name for name, model in _MODELS.items() if model.__module__.startswith("likely.")}
    assert ours - BASES == set(EXAMPLES)


# --- log_prob and score -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("example", CASES)
def test_log_prob_is_one_number_a_row_of_a_named_kind(example):
    model = fitted(example)
    assert hasattr(model, "log_prob") == hasattr(model, "log_prob_kind_")
    if not hasattr(model, "log_prob"):
        with pytest.raises(AttributeError, match=type(model).__name__):
            _ = model.log_prob
        return
    log_prob = model.log_prob(*example.arguments)
    assert isinstance(log_prob, np.ndarray)
    assert log_prob.shape == (rows_of(example.X),)
    assert model.log_prob_kind_ in ("exact", "bound", "estimate")


@pytest.mark.parametrize("example", CASES)
def test_score_is_accuracy_or_r2_or_the_mean_of_log_prob(example):
    model = fitted(example)
    others = models.KMeans | models.Autoencoder  # whose scores are scikit-learn's, and of rows given back
    if not hasattr(model, "score") or isinstance(model, others):
        return
    score = model.score(*example.arguments)
    if is_classifier(model):
        assert score == pytest.approx(accuracy_score(example.y, model.predict(example.X)))
    elif is_regressor(model):
        target = example.X["price"].to_numpy() if example.y is None else example.y
        assert score == pytest.approx(r2_score(target, model.predict(example.X)))
    else:
        assert score == pytest.approx(model.log_prob(*example.arguments).mean())
        weight = np.arange(rows_of(example.X))
        mean = np.average(model.log_prob(*example.arguments), weights=weight)
        assert model.score(*example.arguments, sample_weight=weight) == pytest.approx(mean)


# --- sample -----------------------------------------------------------------------------------------------------------
SAMPLERS = [case for case in CASES if hasattr(case.values[0].make(), "sample")]


@pytest.mark.parametrize("example", SAMPLERS)
def test_an_integer_repeats_the_draws_and_none_does_not(example):
    """Without a seed, two sets of draws agree by chance with probability below 1e-6 (24 rows of two labels)."""
    model = fitted(example)
    np.testing.assert_array_equal(drawn(model, example, random_state=3), drawn(model, example, random_state=3))
    free = clone(model)
    for owner in (free, getattr(free, "model", None)):
        if owner is not None and "random_state" in owner.get_params(deep=False):
            owner.set_params(random_state=None)
    fitted(example, free)
    assert not np.array_equal(drawn(free, example, 24), drawn(free, example, 24))
    seeded = clone(free)
    owner = seeded.model if hasattr(seeded, "model") else seeded
    if "random_state" in owner.get_params(deep=False):
        fitted(example, seeded.set_params(**{"model__random_state" if owner is not seeded else "random_state": 1}))
        np.testing.assert_array_equal(drawn(seeded, example), drawn(seeded, example))


@pytest.mark.parametrize("example", SAMPLERS)
def test_draws_come_in_the_form_given(example):
    model = fitted(example)
    if conditional(model):
        draws = model.sample(example.X, 4, **example.options)
        assert isinstance(draws, np.ndarray)
        assert draws.shape == (4, rows_of(example.X))
        if is_classifier(model):
            assert set(np.unique(draws)) <= set(model.classes_)
        return
    draws = model.sample(4, **example.options)
    assert isinstance(draws, np.ndarray if example.X is SERIES else type(example.X))
    assert rows_of(draws) == 4
    assert not isinstance(draws, tuple)
    if "return_hidden" not in inspect.signature(model.sample).parameters:
        return
    both = model.sample(4, **example.options, return_hidden=True)
    if isinstance(both, tuple):  # a frame has a column more
        assert rows_of(both[1]) == 4


@pytest.mark.parametrize("example", SAMPLERS)
def test_a_number_of_draws_that_will_not_do_is_named(example):
    model = fitted(example)
    for n in (0, 1.5, "many"):
        with pytest.raises(DataError, match=f"n={n!r}: how many to draw must be an integer above 0"):
            drawn(model, example, n)


# --- hidden variables and predictions ---------------------------------------------------------------------------------
@pytest.mark.parametrize("example", CASES)
def test_posterior_is_a_distribution_with_the_mean_of_transform(example):
    model = fitted(example)
    if not hasattr(model, "posterior"):
        return
    posterior = model.posterior(example.X)
    distributions = (
        posterior
        if isinstance(posterior, list)
        else [*posterior.values()]
        if isinstance(posterior, dict)
        else [posterior]
    )
    assert all(isinstance(own, Distribution) for own in distributions)
    if isinstance(posterior, dict):
        return
    if hasattr(model, "predict_proba") and not is_classifier(model):
        proba = model.predict_proba(example.X)
        for own, answer in zip(distributions, proba if isinstance(posterior, list) else [proba], strict=True):
            np.testing.assert_allclose(own.probs, answer, atol=1e-12)
    if hasattr(model, "transform") and not isinstance(model, models.PCA):  # whose scores are scikit-learn's
        codes = model.transform(example.X)
        for own, answer in zip(distributions, codes if isinstance(posterior, list) else [codes], strict=True):
            np.testing.assert_allclose(own.mean, answer, atol=1e-9)


@pytest.mark.parametrize("example", CASES)
def test_predict_dist_is_categorical_for_labels_with_predicts_mean(example):
    model = fitted(example)
    if not hasattr(model, "predict_dist") or not (is_classifier(model) or is_regressor(model)):
        return
    distribution = model.predict_dist(example.X)
    assert distribution.batch_shape == (rows_of(example.X),)
    if is_classifier(model):
        assert isinstance(distribution, Categorical)
        np.testing.assert_allclose(distribution.probs, model.predict_proba(example.X), rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_allclose(distribution.mean, model.predict(example.X), rtol=1e-6)


def test_a_bernoulli_likelihood_answers_in_its_own_words():
    model = models.Classifier(BernoulliLikelihood(), prior=NormalPrior(1.0)).fit(ROWS, LABELS)
    assert isinstance(model.predict_dist(ROWS), Bernoulli)


@pytest.mark.parametrize("example", [case for case in CASES if case.values[0].missing])
def test_impute_fills_gaps_and_nothing_else(example):
    if not hasattr(example.make(), "impute") or not isinstance(example.X, np.ndarray):
        return
    model, holes = fitted(example), np.array(example.X, dtype=float)
    holes[::3, 0] = np.nan
    gaps = np.isnan(holes)
    filled = model.impute(holes)
    assert np.isfinite(filled).all()
    assert (np.isnan(holes) == gaps).all()  # what was given is not written to
    np.testing.assert_array_equal(filled[~np.isnan(holes)], holes[~np.isnan(holes)])
    draws = model.impute(holes, draws=60, random_state=0)
    assert draws.shape == (60, *holes.shape)
    np.testing.assert_array_equal(draws, model.impute(holes, draws=60, random_state=0))
    error = draws.std(0) / np.sqrt(60)
    assert (np.abs(draws.mean(0) - filled)[gaps] < 6 * error[gaps]).all()  # false alarm below 1e-6


@pytest.mark.parametrize("name", EXAMPLES)
def test_impute_is_spelled_alike(name):
    """impute(X, draws=None, random_state=None); whatever else a model needs is given by name."""
    if not hasattr(getattr(models, name), "impute"):
        return
    _, rows, *rest = inspect.signature(getattr(models, name).impute).parameters.values()
    assert rows.name in ("X", "frame")
    assert [own.name for own in rest[:2]] == ["draws", "random_state"]
    assert all(own.default is None for own in rest)
    assert all(own.kind is inspect.Parameter.KEYWORD_ONLY for own in rest[2:])


# --- names ------------------------------------------------------------------------------------------------------------
GONE = {"elbo_", "trace_", "evidence_", "seed", "burn_in", "restarts", "n_restarts", "n_starts"}


@pytest.mark.parametrize("example", CASES)
def test_words_that_have_another_name_are_not_used(example):
    model = fitted(example)
    names = {name for name in dir(model) if not name.startswith("_")} | set(model.get_params())
    assert not names & GONE
    if hasattr(type(model), "components_") or "components_" in vars(model):
        assert isinstance(model.components_, np.ndarray)
    for name, kind in (("converged_", (bool, np.bool_)), ("n_iter_", (int, np.integer)), ("log_likelihood_", float)):
        if name in vars(model):
            assert isinstance(getattr(model, name), kind)
    if vars(model).get("history_") is not None:
        assert np.ndim(model.history_) == 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_fit_takes_weights_and_every_argument_is_a_known_word(name):
    model = getattr(models, name)
    assert "sample_weight" in inspect.signature(model.fit).parameters
    seeds = {own for own in inspect.signature(model).parameters if "seed" in own or "random" in own}
    assert seeds <= {"random_state"}


# --- files, clones, weights -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("example", CASES)
def test_a_loaded_model_gives_the_same_answers(example, tmp_path):
    model = fitted(example)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert type(again) is type(model)
    inner = getattr(model, "model_", model)  # a model of tables has the verbs of the model inside
    for verb in ("predict", "predict_proba", "transform", "energy"):
        if callable(getattr(inner, verb, None)) and not isinstance(model, models.BayesianNetwork):
            question = 6 if isinstance(model, models.Forecaster) else example.X  # steps ahead of what it was fitted to
            (answers, said), (others, repeated) = (heard(getattr(own, verb), question) for own in (model, again))
            assert said == repeated
            for own, other in zip(answers, others, strict=True):
                np.testing.assert_array_equal(own, other)
    if hasattr(model, "log_prob"):
        np.testing.assert_array_equal(again.log_prob(*example.arguments), model.log_prob(*example.arguments))
    if hasattr(model, "sample"):
        np.testing.assert_array_equal(drawn(again, example, random_state=1), drawn(model, example, random_state=1))


@pytest.mark.parametrize("example", CASES)
def test_a_clone_has_the_arguments_and_nothing_learned(example):
    model = fitted(example)
    copy = clone(model)
    assert repr(copy) == repr(model)
    verbs = ("predict", "transform", "log_prob", "score_function", "sample")
    verb = next(name for name in verbs if hasattr(copy, name))
    arguments = (example.X, "wet") if isinstance(model, models.BayesianNetwork) else (example.X,)
    arguments = (1,) if verb == "sample" else arguments
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(copy, verb)(*arguments)


@pytest.mark.parametrize("example", [case for case in CASES if case.values[0].weighted])
def test_a_weight_of_two_is_a_row_twice_and_of_zero_a_row_less(example):
    weight = np.resize([1, 2, 1, 0, 2], rows_of(example.X))
    places = np.repeat(np.arange(len(weight)), weight)
    some = [_taken(part, places) for part in example.arguments]
    weighted = fitted(example, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repeated = example.make().fit(*some)
    question = example.arguments if hasattr(weighted, "log_prob") else (example.X,)
    verb = next(name for name in ("log_prob", "energy", "decision_function", "predict") if hasattr(weighted, name))
    ours, theirs = (getattr(model, verb)(*question) for model in (weighted, repeated))
    if isinstance(weighted, models.KMeans):  # clusters have no order
        ours, theirs = (model.score(example.X) for model in (weighted, repeated))
    scale = np.abs(theirs[np.isfinite(theirs)]).max() if np.ndim(theirs) else abs(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-4 * scale)


def _taken(part: Any, places: np.ndarray) -> Any:
    if isinstance(part, list):
        return [part[place] for place in places]
    return part.iloc[places] if isinstance(part, pd.DataFrame) else part[places]


# --- bad input --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("example", [case for case in CASES if case.values[0].columns])
def test_rows_that_will_not_do_are_refused_by_name(example):
    model, X = fitted(example), np.asarray(example.X, dtype=float)
    names = ("predict", "transform", "log_prob", "score_function")
    verbs = [getattr(model, name) for name in names if hasattr(model, name)]
    bad = {
        "one axis": X[:, 0],
        "too many columns": np.column_stack([X, X]),
        "no rows": X[:0],
        "text": np.full(X.shape, "red"),
        "infinity": np.full_like(X, np.inf),
    }
    if not example.missing and not isinstance(model, models.Mixture | models.GaussianMixture):
        bad["NaN"] = np.full_like(X, np.nan)
    for rows in bad.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of rows without the names of columns
            for verb in verbs[:1]:  # a model that only samples is asked about no rows
                with pytest.raises(DataError, match=r"\bX\b"):
                    verb(rows)
            if rows is not bad["too many columns"]:
                with pytest.raises(DataError, match=r"\bX\b"):
                    example.make().fit(rows, *example.arguments[1:])
