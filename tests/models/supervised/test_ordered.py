"""Labels in order: where the order is from, cut points equal to statsmodels, and what is refused."""

import numpy as np
import pandas as pd
import polars
import pytest

import likely
from likely import Classifier, GaussianProcess, TableModel
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import Laplace
from likely.likelihoods import Ordinal

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 2))
LATENT = X @ [1.0, -0.5] + RNG.logistic(size=150)
LEVELS = ["low", "mid", "high"]
TEXT = np.array(LEVELS)[np.digitize(LATENT, [-0.7, 0.9])]


@pytest.fixture(scope="module")
def model():
    return Classifier(Ordinal(LEVELS)).fit(X, TEXT)


def test_coefficients_and_cut_points_are_those_of_statsmodels(model):
    ordered = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    target = pd.Series(pd.Categorical(TEXT, categories=LEVELS, ordered=True))
    theirs = ordered.OrderedModel(target, X, distr="logit").fit(method="bfgs", disp=0, gtol=1e-8)
    table = model.summary()
    assert table.terms == ("x0", "x1", "low | mid", "mid | high")
    np.testing.assert_allclose(table.estimate[:2], theirs.params[:2], atol=1e-5)
    np.testing.assert_allclose(table.standard_error[:2], theirs.bse[:2], atol=1e-5)
    cuts = theirs.model.transform_threshold_params(theirs.params)[1:-1]
    np.testing.assert_allclose(model.cut_points_, cuts, atol=1e-5)
    np.testing.assert_allclose(table.estimate[2:], cuts, atol=1e-5)
    assert table.standard_error[2] == pytest.approx(
        np.asarray(theirs.bse)[2], abs=1e-5
    )  # the first is a parameter of theirs
    assert table.facts["log_likelihood"] == pytest.approx(theirs.llf, abs=1e-5)
    assert table.facts["aic"] == pytest.approx(theirs.aic, abs=1e-5)


def test_every_way_to_say_the_order_gives_the_same_model(model, tmp_path):
    assert model.classes_.tolist() == LEVELS
    panda = Classifier(Ordinal()).fit(X, pd.Series(pd.Categorical(TEXT, categories=LEVELS, ordered=True)))
    polar = Classifier("ordinal").fit(X, polars.Series(TEXT.tolist(), dtype=polars.Enum(LEVELS)))
    places = np.searchsorted(np.sort(LEVELS), TEXT)
    number = Classifier(Ordinal()).fit(X, places)  # another order: another model
    for same in (panda, polar):
        assert same.classes_.tolist() == LEVELS
        np.testing.assert_allclose(same.cut_points_, model.cut_points_, atol=1e-6)
        assert (same.predict(X) == model.predict(X)).all()
    apart = model.log_prob(X, TEXT).sum() - number.log_prob(X, places).sum()  # 15, with a deviation of 5
    assert abs(apart) > 0.01
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=pd.Categorical(TEXT, categories=LEVELS, ordered=True))
    table = TableModel(Classifier(Ordinal()), "y").fit(frame)
    assert table.classes_.tolist() == LEVELS
    assert table.summary().terms[-2:] == ("low | mid", "mid | high")
    model.save(tmp_path / "model")
    kept = likely.load(tmp_path / "model")
    assert kept.classes_.tolist() == LEVELS
    assert (kept.predict(X) == model.predict(X)).all()


def test_a_posterior_has_cut_points_too(model):
    bayes = Classifier(Ordinal(LEVELS), prior="normal(10.0, biases=normal(10.0))", inference=Laplace()).fit(X, TEXT)
    assert bayes.summary().terms == model.summary().terms
    assert np.abs(bayes.cut_points_ - model.cut_points_).max() < 0.3


def test_what_has_no_order_is_refused_with_the_remedy():
    with pytest.raises(DataError, match=r"text labels \('high', 'low', 'mid'\) without an order.*an ordered pd.Cat"):
        Classifier(Ordinal()).fit(X, TEXT)
    with pytest.raises(DataError, match="without an order"):
        Classifier(Ordinal()).fit(X, pd.Categorical(TEXT))
    with pytest.raises(DataError, match="without an order"):
        GaussianProcess(likelihood=Ordinal()).fit(X[:20], TEXT[:20])
    with pytest.raises(DataError, match="y has the class 'mid', which is not among 'low', 'high'"):
        Classifier(Ordinal(["low", "high"])).fit(X, TEXT)
    with pytest.raises(DataError, match="y has no label 'top'"):
        Classifier(Ordinal([*LEVELS, "top"])).fit(X, TEXT)
    with pytest.warns(LikelyWarning, match="y has no label 'top', so it is no class"):
        Classifier(Ordinal()).fit(X, pd.Categorical(TEXT, categories=[*LEVELS, "top"], ordered=True))
    with pytest.raises(SpecError, match="different labels in order"):
        Ordinal(["a", "a"])
    with pytest.raises(AttributeError, match=r"likelihood=Ordinal\(\)"):
        _ = Classifier().fit(X, TEXT).cut_points_
