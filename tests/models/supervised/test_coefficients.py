"""Standard errors, tests and intervals of linear models: statsmodels' numbers, and where there are none."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import likely
from likely import Classifier, Regressor, TableModel, likelihoods, priors
from likely.core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError
from likely.inference import MAP, NUTS, AdversarialTraining, Ensemble, Exact, Laplace
from likely.likelihoods import Gamma, NegativeBinomial, Normal, Ordinal, Poisson
from likely.networks import MLP, Linear
from likely.optim import LBFGS

RNG = np.random.default_rng(7)
X = RNG.normal(size=(200, 3)) * [1.0, 10.0, 0.1]
WITH_ONE = np.column_stack([X, np.ones(len(X))])
LINE = X @ [1.0, 0.1, 3.0]
Y = LINE + RNG.normal(size=200) * np.exp(0.3 * X[:, 0]) + 2
LABELS = (RNG.random(200) < 1 / (1 + np.exp(-LINE))).astype(int)
COUNTS = RNG.negative_binomial(2, 2 / (2 + np.exp(0.4 * X[:, 0] + 0.5)))
THREE = (RNG.gumbel(size=(200, 3)) + np.column_stack([0 * LINE, LINE, -LINE])).argmax(1)
GROUPS = RNG.integers(0, 15, 200)


def assert_same(summary, peer, rtol=1e-6):
    np.testing.assert_allclose(summary.estimate, np.asarray(peer.params).ravel(order="F"), rtol=rtol, atol=1e-8)
    np.testing.assert_allclose(summary.standard_error, np.asarray(peer.bse).ravel(order="F"), rtol=rtol)
    np.testing.assert_allclose(summary.p_value, np.asarray(peer.pvalues).ravel(order="F"), rtol=1e-4, atol=1e-12)
    told = [summary.facts[name] for name in ("log_likelihood", "aic", "bic")]
    np.testing.assert_allclose(told, [peer.llf, peer.aic, peer.bic], rtol=1e-8)


PEERS = {
    "normal": (Regressor(), Y, sm.OLS),
    "bernoulli": (Classifier(), LABELS, sm.Logit),
    "poisson": (Regressor(Poisson()), COUNTS, sm.Poisson),
    "classes": (Classifier(), THREE, sm.MNLogit),
}


@pytest.mark.parametrize("kind", PEERS)
def test_tables_are_those_of_statsmodels(kind):
    model, y, peer = PEERS[kind]
    fit = {} if kind == "normal" else {"disp": 0}
    expected = peer(y, WITH_ONE).fit(**fit)
    summary = model.fit(X, y).summary()
    assert_same(summary, expected)
    bounds = np.asarray(expected.conf_int()).reshape(-1, 2)
    np.testing.assert_allclose(np.column_stack([summary.lower, summary.upper]), bounds, rtol=1e-5, atol=1e-8)


def test_a_learned_dispersion_counts_as_in_statsmodels():
    expected = sm.NegativeBinomial(COUNTS, WITH_ONE).fit(disp=0, method="newton", maxiter=200)
    summary = Regressor(NegativeBinomial()).fit(X, COUNTS).summary()
    np.testing.assert_allclose(summary.estimate, expected.params[:-1], rtol=1e-6)
    np.testing.assert_allclose(summary.standard_error, expected.bse[:-1], rtol=1e-6)
    assert summary.facts["aic"] == pytest.approx(expected.aic, rel=1e-9)


@pytest.mark.parametrize("errors", ["HC0", "HC1", "HC2", "HC3"])
def test_robust_errors_are_those_of_statsmodels(errors):
    summary = Regressor().fit(X, Y).summary(X, Y, errors=errors)
    assert_same(summary, sm.OLS(Y, WITH_ONE).fit(cov_type=errors))


def test_clustered_errors_are_those_of_statsmodels():
    summary = Regressor().fit(X, Y).summary(X, Y, clusters=GROUPS)
    assert_same(summary, sm.OLS(Y, WITH_ONE).fit(cov_type="cluster", cov_kwds={"groups": GROUPS}))
    logit = Classifier().fit(X, LABELS).summary(X, LABELS, errors="HC0")
    assert_same(logit, sm.Logit(LABELS, WITH_ONE).fit(disp=0, cov_type="HC0"))


def test_weights_count_like_repeated_rows():
    weight = RNG.integers(0, 3, len(X))
    weighted = Classifier().fit(X, LABELS, weight).summary(X, LABELS, weight)
    repeated = Classifier().fit(X.repeat(weight, 0), LABELS.repeat(weight)).summary()
    np.testing.assert_allclose(weighted.standard_error, repeated.standard_error, rtol=1e-7)
    assert weighted.facts["bic"] == pytest.approx(repeated.facts["bic"], rel=1e-9)


def test_several_outputs_are_several_regressions():
    both = Regressor().fit(X, np.column_stack([Y, -2 * Y])).summary()
    single = Regressor().fit(X, Y).summary()
    assert both.terms[0] == "y0: x0"
    assert both.terms[-1] == "y1: intercept"
    np.testing.assert_allclose(both.standard_error, np.concatenate([single.standard_error, 2 * single.standard_error]))


def test_what_rows_do_not_determine_has_no_error():
    doubled = Regressor().fit(X[:, [0, 1, 0]], Y).summary()
    assert np.isnan(doubled.standard_error).tolist() == [True, False, True, False]
    ordinal = Classifier(Ordinal()).fit(X, THREE).summary()  # its intercept is part of the cuts
    assert not np.isnan(ordinal.standard_error).any()
    assert "—" in str(doubled)


def test_as_many_coefficients_as_rows_leave_nothing_to_judge_errors_by():
    assert np.isnan(Regressor().fit(X[:4], Y[:4]).summary().standard_error).all()


def test_a_table_tells_its_columns_in_their_own_units():
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "city": np.array(["Bern", "Oslo", "Rome"])[THREE], "y": Y})
    reference = frame.city.mode()[0]
    model = TableModel(Regressor(), "y").fit(frame)
    summary = model.summary()
    expected = smf.ols(f"y ~ age + C(city, Treatment('{reference}'))", frame).fit()
    others = [f"C(city, Treatment('{reference}'))[T.{c}]" for c in ("Bern", "Oslo", "Rome") if c != reference]
    names = ["age", *others]
    np.testing.assert_allclose(summary.standard_error, expected.bse[[*names, "Intercept"]], rtol=1e-6)
    np.testing.assert_allclose(summary.estimate, expected.params[[*names, "Intercept"]], rtol=1e-6)
    assert summary.terms[0] == "age"
    np.testing.assert_allclose(model.summary(frame).standard_error, summary.standard_error, rtol=1e-6)
    robust = model.summary(frame, clusters="city")
    assert robust.errors == "cluster"


def test_the_terms_of_a_table_add_up_to_its_predictions(tmp_path):
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "year": 2000.0 + X[:, 1], "level": THREE, "y": Y})
    full = TableModel(Regressor(inference=Exact("full")), "y").fit(frame[["age", "year", "y"]])
    plain = TableModel(Regressor(), "y").fit(frame[["age", "year", "y"]])
    for model in (full, plain):
        age, year, intercept = model.summary().estimate
        np.testing.assert_allclose(intercept + age * frame.age + year * frame.year, model.predict(frame), atol=1e-5)
    np.testing.assert_allclose(full.summary().lower, plain.summary().lower, rtol=1e-6)
    plain.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_allclose(again.summary().standard_error, plain.summary().standard_error, rtol=1e-9)
    flat = TableModel(Regressor(network=Linear(bias=False)), "y").fit(frame[["age", "year", "y"]])
    age, year, intercept = flat.summary().estimate
    np.testing.assert_allclose(intercept + age * frame.age + year * frame.year, flat.predict(frame), atol=1e-5)


def test_cut_points_of_a_table_are_those_of_its_raw_columns():
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "level": THREE})
    told = TableModel(Classifier(Ordinal()), "level").fit(frame).summary()
    raw = Classifier(Ordinal()).fit(frame[["age"]], frame.level).summary()
    assert told.terms == raw.terms
    np.testing.assert_allclose(told.estimate, raw.estimate, rtol=1e-5)
    np.testing.assert_allclose(told.standard_error, raw.standard_error, rtol=1e-5)


def test_a_file_keeps_the_table(tmp_path):
    model = Classifier().fit(X, LABELS)
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely").summary()
    np.testing.assert_array_equal(again.standard_error, model.summary().standard_error)
    assert str(again) == str(model.summary())


def test_a_flat_posterior_agrees_with_standard_errors():
    full = Regressor(inference=Exact("full")).fit(X, Y).summary()
    plain = Regressor().fit(X, Y).summary()
    np.testing.assert_allclose(np.column_stack([full.lower, full.upper]), np.column_stack([plain.lower, plain.upper]))
    assert full.p_value is None
    assert full.errors == "posterior"


def test_posteriors_are_told_by_quantiles():
    model = Classifier(prior=priors.Normal(1.0), inference=Laplace()).fit(X, LABELS)
    summary = model.summary(level=0.8)
    drawn = Classifier(prior=priors.Normal(1.0), inference=NUTS(chains=8, draws=150, warmup=200), random_state=0)
    other = drawn.fit(X, LABELS).summary(level=0.8)
    # two ways to the same posterior: with 1200 draws, spreads are apart by half in less than one run of a million
    assert np.all(np.abs(np.log(summary.standard_error / other.standard_error)) < 0.5)
    assert np.all((summary.lower < summary.estimate) & (summary.estimate < summary.upper))


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        (lambda: Classifier(prior=priors.Normal(1.0)).fit(X, LABELS).summary(), SpecError, "towards 0"),
        (lambda: Classifier(prior=priors.Laplace(1.0)).fit(X, LABELS).summary(), SpecError, "towards 0"),
        (
            lambda: Regressor(network=MLP((3,)), inference=MAP(epochs=1)).fit(X, Y).summary(),
            SpecError,
            "coefficients of a linear model",
        ),
        (lambda: Regressor().fit(X, Y).summary(errors="HC3"), DataError, "summary\\(X, y, errors='HC3'\\)"),
        (lambda: Regressor().fit(X, Y).summary(X, Y, errors="HC9"), SpecError, "'HC9' is not known"),
        (lambda: Regressor().fit(X, Y).summary(X), DataError, "both X and y"),
        (lambda: Regressor().fit(X, Y).summary(level=95), DataError, "between 0 and 1"),
        (lambda: Regressor().fit(X, Y).summary(X, Y, clusters=[1, 2]), DataError, "clusters has 2 labels"),
        (lambda: Regressor().fit(X, Y).summary(X, Y, clusters=np.ones(200)), DataError, "one label only"),
        (lambda: Regressor().fit(X, Y).summary(X, Y, errors="cluster"), DataError, "needs clusters="),
        (
            lambda: Regressor().fit(X, Y).summary(X, Y, clusters=["a", None] + ["b"] * 198),
            DataError,
            r"no label at row 1 \(found None\)",
        ),
        (
            lambda: Regressor().fit(X, Y).summary(X, Y, clusters=[1.0] * 199 + [np.nan]),
            DataError,
            r"no label at row 199 \(found nan\)",
        ),
        (
            lambda: Regressor(Gamma()).fit(X, np.exp(Y)).summary(X, np.exp(Y), errors="quasi"),
            SpecError,
            r"Gamma\(\) has a scale of its own",
        ),
    ],
)
def test_where_there_is_no_table_it_says_why(question, error, message):
    with pytest.raises(error, match=message):
        question()


@pytest.mark.parametrize(
    "inference", [Ensemble(3, by=MAP(epochs=2)), AdversarialTraining(by=Ensemble(2, by=MAP(epochs=1)))]
)
def test_fits_that_are_no_posterior_have_no_standard_errors(inference):
    with pytest.raises(SpecError, match=r"not draws from p\(θ \| data\)"):
        Regressor(inference=inference, random_state=0).fit(X, Y).summary()


def test_a_likelihood_without_curvature_has_none_either():
    model = Regressor(likelihoods.Laplace()).fit(X, Y)
    for rows in ((), (X, Y)):
        with pytest.raises(SpecError, match=r"Laplace\(\): the log-likelihood has no curvature .* coef_"):
            model.summary(*rows)


def test_parameters_are_counted_by_what_columns_tell_apart():
    """Where classes are separated, the information of the coefficients is lost in rounding; they are counted still."""
    parted = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="separated"):
        facts = Classifier().fit(X, parted).summary().facts
    assert facts["aic"] / 2 + facts["log_likelihood"] == pytest.approx(4)
    doubled = Classifier().fit(X[:, [0, 1, 0]], THREE).summary().facts
    assert doubled["aic"] / 2 + doubled["log_likelihood"] == pytest.approx(2 * 3)


def test_training_that_stopped_early_says_so_and_training_to_the_end_has_errors():
    with pytest.raises(SpecError, match=r"MAP\(epochs=3\) stopped short of the maximum .* would gain"):
        Regressor(inference=MAP(epochs=3)).fit(X, Y).summary()
    trained = Classifier(inference=MAP(LBFGS(), epochs=50, batch_size=None, tol=1e-6)).fit(X, LABELS).summary()
    np.testing.assert_allclose(trained.standard_error, Classifier().fit(X, LABELS).summary().standard_error, rtol=1e-2)


def test_other_rows_than_those_of_the_fit_are_noticed():
    with pytest.warns(LikelyWarning, match="not at its maximum"):
        Regressor(Normal()).fit(X, Y).summary(X[:50], Y[:50])
