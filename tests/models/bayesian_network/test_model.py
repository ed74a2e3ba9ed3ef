from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely
from likely import BayesianNetwork
from likely.core.errors import DataError, LikelyWarning, SpecError

ASIA_EDGES = [
    ("asia", "tub"),
    ("smoke", "lung"),
    ("smoke", "bronc"),
    ("lung", "either"),
    ("tub", "either"),
    ("either", "xray"),
    ("bronc", "dysp"),
    ("either", "dysp"),
]
YES_NO = ["yes", "no"]


def asia():
    """Lauritzen and Spiegelhalter's chest clinic, with their numbers."""
    sure = np.array([1.0, 0.0])
    tables = {
        "asia": [0.01, 0.99],
        "tub": [[0.05, 0.95], [0.01, 0.99]],
        "smoke": [0.5, 0.5],
        "lung": [[0.1, 0.9], [0.01, 0.99]],
        "bronc": [[0.6, 0.4], [0.3, 0.7]],
        "either": [[sure, sure], [sure, sure[::-1]]],
        "xray": [[0.98, 0.02], [0.05, 0.95]],
        "dysp": [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]],
    }
    return BayesianNetwork.from_tables(ASIA_EDGES, tables, dict.fromkeys(tables, YES_NO))


def enumerate_rows(model):
    """Every complete row, as columns, and its probability by multiplying the tables."""
    rows = list(itertools.product(*(model.states_[name] for name in model.names_)))
    parents = {name: [a for a, b in ASIA_EDGES if b == name] for name in model.names_}
    probability = []
    for row in rows:
        at = {name: model.states_[name].index(state) for name, state in zip(model.names_, row, strict=True)}
        tables = model.tables_
        factors = [tables[name][tuple(at[member] for member in [*parents[name], name])] for name in model.names_]
        probability.append(np.prod(factors))
    return pd.DataFrame(rows, columns=model.names_), np.array(probability)


EVIDENCE = [
    {},
    {"dysp": "yes"},
    {"asia": "yes", "dysp": "yes"},
    {"asia": "yes", "dysp": "yes", "xray": "no"},
    {"smoke": "no", "xray": "yes", "either": "yes"},
]


# --- asia -----------------------------------------------------------------------------------------------------------
def test_asia_has_its_published_marginals():
    marginals = asia().marginals()
    published = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.064828, "xray": 0.11029004, "dysp": 0.4359706}
    for name, value in published.items():
        assert marginals[name]["yes"] == pytest.approx(value, abs=5e-9)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("soft", [{}, {"bronc": {"yes": 0.2, "no": 1.4}, "tub": {"no": 3.0}}])
def test_every_question_about_asia_is_answered_as_by_enumeration(evidence, soft):
    model = asia()
    rows, p = enumerate_rows(model)
    for name, state in evidence.items():
        p = p * (rows[name] == state)
    for name, weights in soft.items():
        p = p * rows[name].map(lambda state, weights=weights: weights.get(state, 0.0))
    if p.sum() == 0:
        with pytest.raises(DataError, match="The evidence has probability zero"):
            model.marginals(evidence, soft)
        return
    p = p.to_numpy() if hasattr(p, "to_numpy") else p
    for name, states in model.marginals(evidence, soft).items():
        for state, value in states.items():
            assert value == pytest.approx(p[rows[name] == state].sum() / p.sum(), abs=1e-12)
    assert model.evidence_log_prob(evidence, soft) == pytest.approx(np.log(p.sum()), abs=1e-11)
    for states, value in model.joint(["dysp", "asia", "lung"], evidence, soft).items():
        match = (rows[["dysp", "asia", "lung"]] == list(states)).all(axis=1)
        assert value == pytest.approx(p[match].sum() / p.sum(), abs=1e-12)
    best = model.most_probable(evidence, soft)
    assert best.log_prob == pytest.approx(np.log(p.max()), abs=1e-11)
    assert best.probability == pytest.approx(p.max() / p.sum(), rel=1e-10)
    assert p[(rows == pd.Series(best.assignment)).all(axis=1)].item() == pytest.approx(p.max(), rel=1e-10)


def test_asia_from_its_file_is_the_same(shared_data):
    model, ours = BayesianNetwork.from_bif(shared_data / "asia.bif"), asia()
    for evidence in EVIDENCE:
        first, second = model.marginals(evidence), ours.marginals(evidence)
        for name in ours.names_:
            assert first[name] == pytest.approx(second[name], abs=1e-12)


def test_alarm_is_read_whole_and_its_marginals_are_those_of_samples(shared_data, seed):
    """37 variables, 46 arcs, 509 free parameters; frequencies of 100,000 draws within 6 standard deviations."""
    model = BayesianNetwork.from_bif(shared_data / "alarm.bif")
    assert (len(model.names_), sum(isinstance(edge, list) for edge in model.edges_)) == (37, 46)
    assert sum(table.size - table[..., 0].size for table in model.tables_.values()) == 509
    for evidence in ({}, {"BP": "LOW", "HRSAT": "HIGH"}):
        marginals, drawn = model.marginals(evidence), model.sample(100_000, evidence, random_state=seed)
        for name, states in marginals.items():
            for state, p in states.items():
                spread = np.sqrt(max(p * (1 - p), 1e-6) / 100_000)
                assert abs((drawn[name] == state).mean() - p) < 6 * spread


def test_evidence_of_probability_zero_is_named():
    with pytest.raises(
        DataError, match=r"The evidence has probability zero: either=no, tub=yes\. Check it, or fit with"
    ):
        asia().marginals({"either": "no", "tub": "yes"})
    with pytest.raises(DataError, match="The evidence has probability zero"):
        asia().most_probable({"either": "no", "tub": "yes"})
    with pytest.raises(DataError, match="The evidence has probability zero"):
        asia().sample(condition={"either": "no", "tub": "yes"})
    with pytest.raises(DataError, match="The evidence has probability zero: lung=yes, soft either"):
        asia().joint("smoke", {"lung": "yes"}, {"either": {"no": 1.0}})
    assert asia().evidence_log_prob({"either": "no", "tub": "yes"}) == -np.inf


def test_the_order_of_evidence_and_of_edges_does_not_matter():
    model = asia()
    turned = BayesianNetwork.from_tables(
        sorted(ASIA_EDGES), {name: turn(model, name) for name in model.names_}, model.states_
    )
    first = model.marginals({"dysp": "yes", "asia": "yes"})
    second = turned.marginals({"asia": "yes", "dysp": "yes"})
    for name in model.names_:
        assert first[name] == pytest.approx(second[name], abs=1e-13)


def turn(model, name):
    before = [a for a, b in ASIA_EDGES if b == name]
    after = [a for a, b in sorted(ASIA_EDGES) if b == name]
    table = model.tables_[name]
    return table.transpose([*(before.index(parent) for parent in after), table.ndim - 1])


# --- the graph ------------------------------------------------------------------------------------------------------
def test_structure_needs_no_fit():
    model = BayesianNetwork(ASIA_EDGES)
    assert model.factorisation() == (
        "p(asia) p(tub | asia) p(smoke) p(lung | smoke) p(bronc | smoke) p(either | lung, tub) p(xray | either) "
        "p(dysp | bronc, either)"
    )
    assert model.markov_blanket("either") == ["tub", "lung", "bronc", "xray", "dysp"]
    assert model.d_separated("asia", "smoke")
    assert not model.d_separated("asia", "smoke", given="dysp")
    assert model.d_separated(["asia", "tub"], ["smoke", "bronc"], given=["lung"])
    with pytest.raises(DataError, match="a and given share 'asia'"):
        model.d_separated("asia", "smoke", given=["asia"])
    with pytest.raises(NotFittedError):
        model.marginals()


def test_given_its_markov_blanket_a_variable_does_not_depend_on_others():
    model = asia()
    blanket = {"tub": "no", "lung": "yes", "bronc": "no", "xray": "yes", "dysp": "no"}
    alone = model.marginals(blanket)["either"]
    assert model.marginals(blanket | {"smoke": "yes", "asia": "yes"})["either"] == pytest.approx(alone, abs=1e-14)


def test_a_cycle_is_named_when_fitted():
    with pytest.raises(SpecError, match="edges hold a cycle: A → B → C → A"):
        BayesianNetwork([("A", "B"), ("B", "C"), ("C", "A")]).fit({"A": [0], "B": [0], "C": [0]})


# --- fitting --------------------------------------------------------------------------------------------------------
def drawn(rows, seed=0):
    return pd.DataFrame(asia().sample(rows, random_state=seed))


@pytest.mark.parametrize("smoothing", [0.0, 0.7])
def test_tables_are_counts_smoothed(smoothing):
    """θ = (count + a) / (N + a · states), with N the rows of the same parents."""
    X = drawn(40)
    model = BayesianNetwork(ASIA_EDGES, smoothing=smoothing, states=dict.fromkeys(asia().names_, YES_NO))
    if smoothing:
        model.fit(X)
    else:
        with pytest.warns(LikelyWarning, match="rows of the tables were never seen and are uniform, such as p"):
            model.fit(X)
    for name in model.names_:
        parents = [a for a, b in ASIA_EDGES if b == name]
        for states in itertools.product(*([YES_NO] * len(parents))):
            rows = X[(X[parents] == list(states)).all(axis=1)] if parents else X
            table = model.tables_[name][tuple(YES_NO.index(state) for state in states)]
            for place, state in enumerate(YES_NO):
                count, total = (rows[name] == state).sum() + smoothing, len(rows) + 2 * smoothing
                assert table[place] == pytest.approx(count / total if total else 0.5, abs=1e-14)


def test_weights_count_as_copies_and_bdeu_is_dirichlet():
    X = drawn(100)
    copies = np.random.default_rng(0).integers(0, 3, 100)
    states = dict.fromkeys(X.columns, YES_NO)
    first = BayesianNetwork(ASIA_EDGES, equivalent_sample_size=4, states=states).fit(X, sample_weight=copies)
    second = BayesianNetwork(ASIA_EDGES, equivalent_sample_size=4, states=states).fit(X.loc[X.index.repeat(copies)])
    np.testing.assert_allclose(first.probabilities_, second.probabilities_, rtol=1e-14)
    kept = X.loc[X.index.repeat(copies)]
    smokers = kept[kept["smoke"] == "yes"]
    expected = ((smokers["lung"] == "yes").sum() + 1) / (len(smokers) + 2)
    assert first.tables_["lung"][0, 0] == pytest.approx(expected)


def test_maximum_likelihood_beats_the_truth_on_its_own_rows(seed):
    """Each p is within 6 of its standard errors √(p(1 − p)/n), n rows with its parents' states: a false alarm in 1 of
    10⁶ seeds, as the rarest states are those of a Poisson distribution with mean 25.
    """
    X = drawn(50_000, seed)
    model = BayesianNetwork(ASIA_EDGES, smoothing=1e-9, states=dict.fromkeys(asia().names_, YES_NO)).fit(X)
    assert model.score(X) >= asia().score(X)
    for name, table in asia().tables_.items():
        parents = [parent for parent, child in ASIA_EDGES if child == name]
        every = itertools.product(YES_NO, repeat=len(parents))
        rows = np.array([(X[parents] == list(states)).all(axis=1).sum() for states in every])
        error = np.sqrt(table * (1 - table) / rows.reshape(*[2] * len(parents), 1))
        assert (np.abs(model.tables_[name] - table) <= 6 * error + 1e-9).all()
    assert len(model.history_) == 1
    assert model.history_[0] == pytest.approx(model.log_prob(X).sum(), rel=1e-6)


def test_em_learns_from_missing_values_and_never_lowers_the_likelihood():
    rng = np.random.default_rng(0)
    whole = drawn(2000)
    X = whole.mask(rng.random(whole.shape) < 0.25)
    model = BayesianNetwork(ASIA_EDGES, smoothing=0.1, random_state=0).fit(X)
    assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_[1:])).all()
    penalty = 0.1 * np.log(model.probabilities_).sum()
    assert model.history_[-1] == pytest.approx(model.log_prob(X).sum() + penalty, rel=1e-9)
    guess = pd.DataFrame({name: whole[name].fillna("no") for name in whole})
    assert model.score(guess) > BayesianNetwork(ASIA_EDGES, smoothing=0.1).fit(X.fillna("no")).score(guess)


def test_kinds_of_tables_give_the_same_model():
    X = drawn(60)
    fit = BayesianNetwork(ASIA_EDGES, smoothing=1).fit
    expected = fit(X).probabilities_
    names = fit(X).names_
    for other in (pl.from_dict(X.to_dict("list")), X.to_dict("list"), X.to_dict("records"), X[names].to_numpy()):
        np.testing.assert_array_equal(fit(other).probabilities_, expected)


def test_a_variable_that_is_never_seen_needs_states():
    edges = [("class", "a"), ("class", "b")]
    X = {"a": [0, 1, 0, 1], "b": [0, 1, 0, 1]}
    with pytest.raises(
        DataError, match=r"'class' has no column in X; a variable that is never seen needs states={'class'"
    ):
        BayesianNetwork(edges).fit(X)
    with pytest.raises(DataError, match="'class' has no value in its column of X"):
        BayesianNetwork(edges).fit(X | {"class": [None] * 4})
    model = BayesianNetwork(edges, states={"class": [1, 2]}, smoothing=0.01, random_state=0).fit(X)
    assert model.posterior(X)["class"].probs.max(1).values.min() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": -1}, r"BayesianNetwork\(smoothing=-1\): smoothing must be a number from 0"),
        ({"equivalent_sample_size": -2}, r"BayesianNetwork\(equivalent_sample_size=-2\)"),
        ({"smoothing": 1, "equivalent_sample_size": 1}, "give smoothing or equivalent_sample_size, not both"),
        ({"states": {"a": "yes"}}, r"states\['a'\] is 'yes'; it must list different states"),
    ],
)
def test_other_arguments_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        BayesianNetwork([("a", "b")], **options).fit({"a": [0, 1], "b": [0, 1]})


def test_unknown_states_and_missing_tables_are_refused():
    model = asia()
    with pytest.raises(DataError, match=r"'yess' is not a state of 'smoke'\. Did you mean 'yes'\?"):
        model.marginals({"smoke": "yess"})
    with pytest.raises(DataError, match=r"There is no variable 'smok'\. Did you mean 'smoke'\?"):
        model.predict(drawn(2), "smok")
    with pytest.raises(DataError, match=r"X has 'maybe' in column 'smoke' \(row 1\), no state"):
        model.log_prob({"smoke": ["yes", "maybe"]})
    with pytest.raises(DataError, match="tables has none for 'b'"):
        BayesianNetwork.from_tables([("a", "b")], {"a": [0.5, 0.5]})
    with pytest.raises(DataError, match=r"p\(b \| a=1\) sums to 0\.9"):
        BayesianNetwork.from_tables([("a", "b")], {"a": [0.5, 0.5], "b": [[0.5, 0.5], [0.5, 0.4]]})
    with pytest.raises(DataError, match="names must be different variables"):
        model.joint(["asia", "asia"])
    with pytest.raises(DataError, match="n=0: how many to draw must be an integer above 0"):
        model.sample(0)


# --- rows -----------------------------------------------------------------------------------------------------------
def test_log_prob_of_rows_sums_out_what_is_missing():
    model = asia()
    rows, p = enumerate_rows(model)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.log_prob(rows), np.log(p), atol=1e-12)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    part = [{"dysp": "yes"}, {"smoke": "no", "xray": "yes"}, rows.iloc[77].to_dict()]
    expected = [model.evidence_log_prob(row) for row in part]
    np.testing.assert_allclose(model.log_prob(part), expected, atol=1e-12)
    assert model.score(part) == pytest.approx(np.mean(expected))


def test_many_rows_are_answered_as_each_alone():
    model = asia()
    X = drawn(30).mask(np.random.default_rng(0).random((30, 8)) < 0.4)
    posterior = model.posterior(X)
    for row, values in enumerate(X.to_dict("records")):
        known = {name: state for name, state in values.items() if isinstance(state, str)}
        for name, states in model.marginals(known).items():
            np.testing.assert_allclose(posterior[name].probs[row], list(states.values()), atol=1e-12)
    others = X.drop(columns="lung")
    np.testing.assert_allclose(model.predict_proba(X, "lung"), model.posterior(others)["lung"].probs, atol=1e-13)
    chosen = np.array(YES_NO)[model.predict_proba(X, "lung").argmax(1)]
    np.testing.assert_array_equal(model.predict(X, "lung"), chosen)


def test_prediction_is_the_bayes_rule(seed):
    """The error of the most probable state is 1 − E max p, below which no rule can go: within 5 standard deviations of
    20,000 rows, but for 1 of 10⁶ seeds.
    """
    model = asia()
    X = drawn(20_000, seed)
    error = (model.predict(X, "bronc") != X["bronc"]).mean()
    bound = 1 - model.predict_proba(X, "bronc").max(1).mean()
    assert error == pytest.approx(bound, abs=5 * np.sqrt(bound / 20_000))


def test_an_impossible_row_is_named():
    with pytest.raises(DataError, match="Row 1 of X has probability zero: tub=yes, either=no"):
        asia().predict([{"tub": "no"}, {"tub": "yes", "either": "no"}], "smoke")


def test_samples_given_evidence_agree_with_it():
    columns = asia().sample(500, {"either": "yes", "smoke": "no"}, random_state=1)
    assert set(columns["either"]) == {"yes"}
    assert set(columns["smoke"]) == {"no"}
    assert ((columns["lung"] == "yes") | (columns["tub"] == "yes")).all()
    again = asia().sample(500, {"either": "yes", "smoke": "no"}, random_state=1)
    np.testing.assert_array_equal(columns["dysp"], again["dysp"])


# --- files ----------------------------------------------------------------------------------------------------------
def test_saved_and_loaded_it_is_the_same(tmp_path):
    X = drawn(200).mask(np.random.default_rng(0).random((200, 8)) < 0.1)
    model = BayesianNetwork(ASIA_EDGES, smoothing=1, random_state=0).fit(X)
    model.save(tmp_path / "clinic.likely")
    loaded = likely.load(tmp_path / "clinic.likely")
    assert loaded.marginals({"dysp": "yes"}) == model.marginals({"dysp": "yes"})
    np.testing.assert_array_equal(loaded.history_, model.history_)
    assert (loaded.names_, loaded.states_) == (model.names_, model.states_)
    file = tmp_path / "given.likely"
    asia().save(file)
    assert likely.load(file).most_probable() == asia().most_probable()
    assert not hasattr(clone(model), "probabilities_")


def test_bif_round_trip(tmp_path):
    model = asia()
    model.to_bif(tmp_path / "asia.bif")
    again = BayesianNetwork.from_bif(tmp_path / "asia.bif")
    assert again.names_ == model.names_
    assert again.marginals({"xray": "yes"}) == model.marginals({"xray": "yes"})


def test_whole_numbers_stay_whole_numbers(tmp_path):
    model = BayesianNetwork([("a", "b")], smoothing=1).fit(pd.DataFrame({"a": [0, 1, 1], "b": [1.0, np.nan, 0.0]}))
    assert model.states_ == {"a": [0, 1], "b": [0, 1]}
    assert model.predict({"a": [1]}, "b").dtype.kind == "i"
    model.save(tmp_path / "model.likely")
    assert likely.load(tmp_path / "model.likely").marginals({"a": 1}) == model.marginals({"a": 1})


def test_a_network_too_wide_to_be_exact_fits_scores_and_samples():
    """A grid of 32 × 32: its tables have 8 entries each, but any clique tree has a clique of 32 variables and more."""
    side = range(32)
    edges = [(f"{a}-{b}", f"{a + 1}-{b}") for a in side for b in side if a < 31]
    edges += [(f"{a}-{b}", f"{a}-{b + 1}") for a in side for b in side if b < 31]
    rng = np.random.default_rng(0)
    X = {f"{a}-{b}": rng.integers(0, 2, 20) for a in side for b in side}
    model = BayesianNetwork(edges, smoothing=1).fit(X)
    assert np.isfinite(model.log_prob(X)).all()
    assert len(model.sample(5, random_state=0)) == 1024
    with pytest.raises(DataError, match=r"Exact inference needs clique tables of .* entries; the largest clique joins"):
        model.marginals()


def test_an_inference_that_it_cannot_use_is_refused_with_complete_data_too():
    with pytest.raises(SpecError, match="HMC needs the exact log-probability of each row; BayesianNetwork has none"):
        BayesianNetwork([("a", "b")], inference="hmc").fit([{"a": 0, "b": 1}, {"a": 1, "b": 0}])
