"""Offsets and exposures: equal to statsmodels, the same for every likelihood, network and inference."""

import warnings

import numpy as np
import pytest
import torch

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.core.spec import registered
from likely.inference import MAP, Ensemble
from likely.inference.objective import Conditional
from likely.likelihoods import Categorical, Gamma, Likelihood, NegativeBinomial, Normal, Poisson
from likely.networks import LSTM, MLP
from likely.optim import Adam

sm = pytest.importorskip("statsmodels.api")
RNG = np.random.default_rng(3)
N = 60
X = RNG.normal(size=(N, 2))
Z = sm.add_constant(X, prepend=False)
TIME = RNG.uniform(0.5, 50.0, N)
OFFSET = RNG.normal(size=N)
MEAN = TIME * np.exp(0.3 * X[:, 0] - 0.5 * X[:, 1] + 0.2)
COUNTS = RNG.poisson(MEAN)


def test_poisson_with_exposure_is_that_of_statsmodels():
    theirs = sm.GLM(COUNTS, Z, family=sm.families.Poisson(), exposure=TIME).fit(tol=1e-12)
    ours = Regressor(Poisson()).fit(X, COUNTS, exposure=TIME)
    table = ours.summary(X, COUNTS, exposure=TIME)
    np.testing.assert_allclose(table.estimate, theirs.params, atol=1e-6)
    np.testing.assert_allclose(ours.summary().standard_error, theirs.bse, atol=1e-6)
    assert table.facts["log_likelihood"] == pytest.approx(theirs.llf, abs=1e-6)
    assert table.facts["deviance"] == pytest.approx(theirs.deviance, abs=1e-6)
    assert table.facts["dispersion"] == pytest.approx(theirs.pearson_chi2 / theirs.df_resid, abs=1e-6)
    np.testing.assert_allclose(ours.predict(X, exposure=2.0), theirs.predict(Z, exposure=np.full(N, 2.0)), rtol=1e-6)
    quasi = sm.GLM(COUNTS, Z, family=sm.families.Poisson(), exposure=TIME).fit(scale="X2")
    errors = ours.summary(X, COUNTS, exposure=TIME, errors="quasi").standard_error
    np.testing.assert_allclose(errors, quasi.bse, atol=1e-6)


def test_negative_binomial_gamma_and_logistic_are_those_of_statsmodels():
    counts = RNG.negative_binomial(2, 2 / (2 + MEAN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops at its last digits, and says so
        theirs = sm.NegativeBinomial(counts, Z, exposure=TIME).fit(disp=0, gtol=1e-10, maxiter=500)
    ours = Regressor(NegativeBinomial()).fit(X, counts, exposure=TIME).summary()
    np.testing.assert_allclose(ours.estimate, theirs.params[:3], atol=1e-6)
    sizes = RNG.gamma(2, MEAN / 2)
    family = sm.families.Gamma(sm.families.links.Log())
    theirs = sm.GLM(sizes, Z, family=family, offset=np.log(TIME)).fit(tol=1e-13)
    ours = Regressor(Gamma()).fit(X, sizes, offset=np.log(TIME)).summary()
    np.testing.assert_allclose(ours.estimate, theirs.params, atol=1e-6)
    labels = RNG.binomial(1, 1 / (1 + np.exp(-X[:, 0] - OFFSET)))
    theirs = sm.GLM(labels, Z, family=sm.families.Binomial(), offset=OFFSET).fit(tol=1e-12)
    model = Classifier().fit(X, labels, offset=OFFSET)
    np.testing.assert_allclose(model.summary().estimate, theirs.params, atol=1e-6)
    probabilities = model.predict_proba(X, offset=OFFSET)[:, 1]
    np.testing.assert_allclose(probabilities, theirs.predict(Z, offset=OFFSET), atol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X, offset=OFFSET))[:, 1], probabilities, atol=1e-6)
    assert model.score(X, labels, offset=OFFSET) == np.mean((probabilities > 0.5) == labels)


ELSEWHERE = ("Product", "Chain", "NegativeBinomial", "Gamma", "Beta")
"""Refused, or slow to fit twice and equal to statsmodels above."""
FAMILIES = {
    name: cls.example()
    for name, cls in registered(Likelihood).items()
    if name not in ELSEWHERE and cls.link != "identity"  # an offset of those is taken from y
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_one_offset_for_all_rows_changes_the_intercept_alone(family):
    """Also of families and classes that are defined later."""
    target = family.example_target()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        y = family.distribution(torch.zeros(N, family.size(target))).sample().numpy()
    width = family.bind(target).offsets(target)
    constant = np.full((N, width) if width > 1 else N, 0.4)
    constant[..., 0] = 0.4 if width == 1 else 0.9
    maker = Classifier if family.labels else Regressor
    x = X[:, :1]
    plain, moved = maker(family).fit(x, y), maker(family).fit(x, y, offset=constant)
    weights = [model.posterior_.parameters["network.weight"].numpy() for model in (plain, moved)]
    np.testing.assert_allclose(weights[0] - weights[0][:, -1:], weights[1] - weights[1][:, -1:], atol=2e-3)
    answers = plain.log_prob(x, y), moved.log_prob(x, y, offset=constant)
    np.testing.assert_allclose(*answers, atol=2e-3)


def fit_regressions():
    examples = {name: kind.example() for name, kind in registered("inference").items()}
    return sorted(name for name, own in examples.items() if own.needs <= Conditional(Poisson()).offers)


@pytest.mark.parametrize("name", fit_regressions())
def test_twice_the_exposure_is_twice_the_mean_whatever_found_the_rate(name):
    inference = registered("inference")[name].example()
    model = Regressor(Poisson(), prior="normal(1.0)", inference=inference, random_state=0)
    if "alone" in inference.needs:
        with pytest.raises(SpecError, match="x alone describes, without an offset"):
            model.fit(X, COUNTS, exposure=TIME)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", likely.core.errors.LikelyWarning)  # examples are short
        model.fit(X, COUNTS, exposure=TIME)
    once, twice = model.predict(X, exposure=1.0), model.predict(X, exposure=2.0)
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-4)
    assert model.predict_dist(X, exposure=TIME).mean.isfinite().all()


def test_a_network_learns_the_rate_and_not_the_exposure():
    """Counts of 100 and more, whose rates the rows tell to a few per cent."""
    time = RNG.uniform(50.0, 5000.0, 300)
    x = RNG.normal(size=(300, 2))
    rate = np.where(x[:, 0] > 0, 4.0, 2.0)
    y = RNG.poisson(rate * time)
    model = Regressor(Poisson(), MLP((16,)), inference=Ensemble(2, MAP(Adam(0.05), epochs=60)), random_state=0)
    model.fit(x, y, exposure=time)
    per_unit = model.predict(x, exposure=1.0)
    clear = np.abs(x[:, 0]) > 0.5
    assert np.abs(np.log(per_unit[clear] / rate[clear])).mean() < 0.15
    np.testing.assert_allclose(model.predict(x, exposure=time), per_unit * time, rtol=1e-4)


def test_positions_and_sequences_take_offsets_per_row_or_target(tmp_path):
    several = np.stack([COUNTS, COUNTS], 1)
    both = Regressor(Poisson()).fit(X, several, exposure=TIME)
    one = Regressor(Poisson()).fit(X, COUNTS, exposure=TIME)
    second = both.predict(X, exposure=np.stack([TIME, 2 * TIME], 1))[:, 1]
    np.testing.assert_allclose(second, 2 * one.predict(X, exposure=TIME))
    rows = [RNG.normal(size=(length, 1)) for length in (2, 3, 1, 4)]
    targets = [RNG.poisson(3.0, size=len(row)) for row in rows]
    times = [RNG.uniform(1, 2, size=len(row)) for row in rows]
    model = Regressor(Poisson(), LSTM(4, output="each"), inference=MAP(epochs=2), random_state=0)
    model.fit(rows, targets, exposure=times)
    first, second = model.predict(rows, exposure=[1.0, 2.0, 1.0, 2.0]), model.predict(rows, exposure=1.0)
    np.testing.assert_allclose(first[1], 2 * second[1], rtol=1e-5)
    model.save(tmp_path / "model")
    kept = likely.load(tmp_path / "model")
    np.testing.assert_array_equal(kept.predict(rows, exposure=times)[3], model.predict(rows, exposure=times)[3])
    with pytest.raises(DataError, match="fitted with an offset or an exposure"):
        kept.predict(rows)


def test_a_normal_with_an_offset_is_least_squares_of_the_rest():
    y = X @ [1.0, 2.0] + OFFSET
    model = Regressor().fit(X, y, offset=OFFSET)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(model.predict(X, offset=OFFSET), y, atol=1e-9)
    assert model.score(X, y, offset=OFFSET) == pytest.approx(1.0)
    lower, upper = Regressor(Normal(1.0)).fit(X, y, offset=OFFSET).predict_interval(X, offset=OFFSET)
    np.testing.assert_allclose((lower + upper) / 2, y, atol=1e-6)
    assert model.sample(X, 2, random_state=0, offset=OFFSET + 100.0).mean() == pytest.approx(y.mean() + 100.0)


def test_what_does_not_fit_is_refused_with_the_remedy():
    model = Regressor(Poisson()).fit(X, COUNTS, exposure=TIME)
    with pytest.raises(DataError, match=r"offset=0\.0, exposure=1\.0"):
        model.predict(X)
    with pytest.raises(DataError, match="it must be above 0: for how long"):
        model.predict(X, exposure=-TIME)
    with pytest.raises(DataError, match=r"has shape \(5,\); Poisson\(\) of 60 rows needs \(60,\), one number for each"):
        model.predict(X, exposure=TIME[:5])
    with pytest.raises(DataError, match="offset has a value that is not a finite number at row 0"):
        model.predict(X, offset=np.full(N, np.nan))
    with pytest.raises(DataError, match="offset has values that are not numbers"):
        model.predict(X, offset=["a"] * N)
    with pytest.raises(SpecError, match=r"Normal\(\) has none. Give offset="):
        Regressor().fit(X, OFFSET, exposure=TIME)
    with pytest.raises(DataError, match=r"needs \(60, 3\)"):
        Classifier(Categorical()).fit(X, np.arange(N) % 3, offset=OFFSET)
    family = likely.likelihoods.Product({"a": Normal(), "b": Normal()})
    with pytest.raises(SpecError, match="fit its parts apart"):
        Regressor(family).fit(X, X, offset=OFFSET)
    with pytest.raises(DataError, match=r"let a fraction of those validate, as in validation=0\.1"):
        Regressor(Poisson(), MLP(), inference=MAP(validation=(X, COUNTS))).fit(X, COUNTS, exposure=TIME)
    with pytest.raises(DataError, match="For rates, give the counts, and exposure="):
        Regressor(Poisson()).fit(X, COUNTS / TIME, sample_weight=TIME)
    with pytest.raises(SpecError, match="has a scale of its own, which its standard errors account for"):
        Regressor().fit(X, OFFSET).summary(X, OFFSET, errors="quasi")
