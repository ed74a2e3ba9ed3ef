"""Standard errors, tests and intervals of linear models: statsmodels' numbers, and where there are none."""

import numpy as np
import pytest
import statsmodels.api as sm
from tests.models.supervised.summary_rows import COUNTS, LABELS, RNG, THREE, WITH_ONE, X, Y, assert_same

import likely
from likely import Classifier, Regressor, priors
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import MAP
from likely.likelihoods import Gamma, NegativeBinomial, Normal, Poisson
from likely.networks import MLP
from likely.optim import LBFGS

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


def test_weights_count_like_repeated_rows():
    weight = RNG.integers(0, 3, len(X))
    weighted = Classifier().fit(X, LABELS, weight).summary(X, LABELS, weight)
    repeated = Classifier().fit(X.repeat(weight, 0), LABELS.repeat(weight)).summary()
    np.testing.assert_allclose(weighted.standard_error, repeated.standard_error, rtol=1e-7)
    assert weighted.facts["bic"] == pytest.approx(repeated.facts["bic"], rel=1e-9)


def test_a_file_keeps_the_table(tmp_path):
    model = Classifier().fit(X, LABELS)
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely").summary()
    np.testing.assert_array_equal(again.standard_error, model.summary().standard_error)
    assert str(again) == str(model.summary())


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


def test_standard_errors_need_training_to_the_end():
    with pytest.raises(SpecError, match=r"MAP\(epochs=3\) stopped short of the maximum .* would gain"):
        Regressor(inference=MAP(epochs=3)).fit(X, Y).summary()
    trained = Classifier(inference=MAP(LBFGS(), epochs=50, batch_size=None, tol=1e-6)).fit(X, LABELS).summary()
    np.testing.assert_allclose(trained.standard_error, Classifier().fit(X, LABELS).summary().standard_error, rtol=1e-2)


def test_other_rows_than_those_of_the_fit_are_noticed():
    with pytest.warns(LikelyWarning, match="not at its maximum"):
        Regressor(Normal()).fit(X, Y).summary(X[:50], Y[:50])
