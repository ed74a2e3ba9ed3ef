"""Fine-tuning begins at the base bit for bit, learns what it was told to, and leaves plain weights behind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likely
from likely import Classifier, LanguageModel, MaskedLanguageModel, NaiveBayes, Regressor
from likely.core.errors import LikelyWarning, SpecError
from likely.core.spec import Spec
from likely.data.text import Characters, Words
from likely.inference import HMC, MAP, Ensemble, FineTune, LowRank, MCDropout
from likely.networks import GRU, MLP, Transformer
from likely.optim import SGD

STILL = MAP(SGD(1e-30), steps=2, batch_size=16)
"""Steps too short to change a bit of a weight."""
QUICK = MAP("adam(0.01)", epochs=3, batch_size=16)
NETWORK = MLP((6, 5), activation="tanh")
TRAINS = ["all", "head", LowRank(2, 0.5)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3))


@pytest.fixture
def y(X):
    return np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])


@pytest.fixture
def base(X, y):
    return Classifier(network=NETWORK, inference=QUICK, random_state=0).fit(X, y)


def tuned(start, X, y, by=QUICK, train="all", **arguments):
    arguments = {"network": NETWORK, "random_state": 1} | arguments
    return Classifier(inference=FineTune(start, by, train), **arguments).fit(X, y)


def parameters(model):
    return {name: value[0] for name, value in model.posterior_.parameters.items()}


# --- where it begins ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("train", TRAINS)
def test_before_the_first_step_it_is_the_base_bit_for_bit(train, base, X, y):
    """Other rows have other units; those of the base are taken over with its weights."""
    model = tuned(base, 3 * X[:30] + 1, y[:30], STILL, train)
    np.testing.assert_array_equal(model.predict_proba(X), base.predict_proba(X))
    assert model.posterior_.info["fine_tune"]["new"] == []


def test_a_body_is_taken_over_and_a_new_head_begins_as_usual(base, X, y):
    four = np.where(y == 2, 2 + (X[:, 2] > 0), y)
    model = tuned(base, X, four, STILL)
    fresh = Classifier(network=NETWORK, inference=STILL, random_state=1).fit(X, four)
    own, old, new = parameters(model), parameters(base), parameters(fresh)
    for name in ("network.0.weight", "network.0.bias", "network.2.weight", "network.2.bias"):
        assert torch.equal(own[name], old[name])
    assert model.posterior_.info["fine_tune"]["new"] == ["network.4.weight", "network.4.bias"]
    assert torch.equal(own["network.4.weight"], new["network.4.weight"])
    assert not torch.equal(own["network.0.weight"], new["network.0.weight"])


def test_another_task_takes_the_body_even_if_the_shape_of_its_head_agrees(X, y):
    """One number describes a mean, and the log-odds of two classes: η does not mean the same."""
    regressor = Regressor(network=NETWORK, inference=QUICK, random_state=0).fit(X, X[:, 0])
    model = tuned(regressor, X, y > 0, STILL)
    assert {"network.4.weight", "network.4.bias"} == set(model.posterior_.info["fine_tune"]["new"])
    assert torch.equal(parameters(model)["network.2.weight"], parameters(regressor)["network.2.weight"])


def test_of_several_members_the_heaviest_is_the_start(X, y):
    several = Classifier(network=NETWORK, inference=Ensemble(3, by=QUICK), random_state=0).fit(X, y)
    several.posterior_.weights = torch.tensor([0.2, 0.5, 0.3])
    model = tuned(several, X, y, STILL)
    assert torch.equal(parameters(model)["network.0.weight"], several.posterior_.parameters["network.0.weight"][1])


@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_the_start_is_a_network_where_an_affine_map_is_beside_it(share, X, tmp_path):
    """Whatever weight it has; from memory and from its file."""
    y = X[:, 0]
    default = Regressor(network=MLP((4,)), random_state=0).fit(X, y)
    posterior, path = default.posterior_, tmp_path / "default.likely"
    assert posterior.module.affine is not None
    posterior.weights = torch.tensor([(1 - share) / 8] * 8 + [share])
    default.save(path)
    expected = posterior.module_of(0)(torch.from_numpy(X).float())[:, 0].numpy()
    for start in (default, path):
        model = Regressor(network=MLP((4,)), inference=FineTune(start, STILL), random_state=1).fit(X, y)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5, atol=1e-6)
        assert model.posterior_.info["fine_tune"]["new"] == []


def test_an_inference_as_the_start_fits_the_same_rows_first(X, y):
    model = tuned(MAP("adam(0.05)", epochs=60), X, y, STILL)
    assert model.score(X, y) > 0.8


# --- what learns ----------------------------------------------------------------------------------------------------
def test_the_head_alone_learns(base, X, y):
    model = tuned(base, X, y, train="head")
    own, old = parameters(model), parameters(base)
    same = {name for name in own if torch.equal(own[name], old[name])}
    assert same == {"network.0.weight", "network.0.bias", "network.2.weight", "network.2.bias"}
    assert model.posterior_.info["fine_tune"]["trained"] == 5 * 3 + 3


def test_low_rank_learns_r_times_in_and_out_per_layer_and_the_rest_stays(base, X, y):
    model = tuned(base, X, y, train=LowRank(2))
    own, old = parameters(model), parameters(base)
    assert model.posterior_.info["fine_tune"]["trained"] == 2 * ((3 + 6) + (6 + 5) + (5 + 3))
    for name, value in own.items():
        if name.endswith("bias"):
            assert torch.equal(value, old[name])
        else:
            singular = torch.linalg.svdvals((value - old[name]).double())
            assert singular[1] > 1e-4
            assert (singular[2:] < 1e-6).all()


@pytest.mark.parametrize("train", TRAINS)
@pytest.mark.parametrize("by", [Ensemble(2, by=QUICK), MCDropout(3, by=QUICK)])
def test_inferences_over_map_begin_there_too(by, train, X, y):
    network = NETWORK.replace(dropout=0.1)
    base = Classifier(network=network, inference=QUICK, random_state=0).fit(X, y)
    model = tuned(base, X, np.minimum(y, 1), by, train, network=network)
    layer = model.posterior_.parameters["network.0.weight"]
    assert len(layer) == len(model.posterior_)
    if train == "head":
        assert all(torch.equal(own, parameters(base)["network.0.weight"]) for own in layer)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0, rtol=1e-5)
    inside = Ensemble(2, by=FineTune(base, QUICK, train))
    assert len(Classifier(network=network, inference=inside, random_state=0).fit(X, y).posterior_) == 2


# --- files and words ------------------------------------------------------------------------------------------------
def test_a_path_is_a_start_and_what_is_tuned_needs_it_no_more(base, X, y, tmp_path):
    base.save(tmp_path / "base.likely")
    model = tuned(tmp_path / "base.likely", X, y, train=LowRank(1))
    np.testing.assert_array_equal(model.predict_proba(X), tuned(base, X, y, train=LowRank(1)).predict_proba(X))
    model.save(tmp_path / "tuned.likely")
    (tmp_path / "base.likely").unlink()
    again = likely.load(tmp_path / "tuned.likely")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.inference == model.inference
    tuned(base, X, y).save(tmp_path / "held.likely")
    with pytest.raises(SpecError, match=r"FineTune needs a start: a fitted model, or the path of its file"):
        likely.load(tmp_path / "held.likely").fit(X, y)


def test_it_is_a_value(base):
    spec = FineTune("base.likely", MAP(epochs=3), LowRank(4, 0.5))
    assert Spec.from_json(spec.to_json()) == spec
    assert FineTune.parse('finetune("base.likely", by=map(epochs=3), train="lowrank(4, scale=0.5)")') == spec
    assert repr(FineTune(base)) == "FineTune(start=(…))"
    assert FineTune(base).replace(train="head").start is not None


# --- other models ---------------------------------------------------------------------------------------------------
TEXTS = ["the cat sat on the mat", "a dog ran to the log", "the dog sat", "a cat ran"]


@pytest.mark.parametrize("network", [Transformer(8, 2, 1), Transformer(8, 2, 1, tied=True), GRU(4)])
def test_a_masked_language_model_is_the_body_of_a_classifier(network):
    base = MaskedLanguageModel(network, context=8, inference=MAP(epochs=2), random_state=0).fit(TEXTS)
    rows = [base.vocabulary_.encode(text) for text in TEXTS]
    two_sided = {"bidirectional": True} if isinstance(network, GRU) else {"tied": False}
    own = network.replace(tokens=base.vocabulary_.size, output="mean", **two_sided)
    with_body = Classifier(network=own, inference=FineTune(base, STILL), random_state=0).fit(rows, [0, 1, 0, 1])
    head = "head" if isinstance(network, Transformer) else "readout"
    assert with_body.posterior_.info["fine_tune"]["new"] == [f"network.{head}.weight", f"network.{head}.bias"]
    for name, value in parameters(with_body).items():
        if f".{head}." not in name:
            assert torch.equal(value, parameters(base)[name][: len(value)])


def test_a_classifier_of_texts_reads_the_tokens_of_its_start(tmp_path):
    base = MaskedLanguageModel(GRU(4), context=8, inference=MAP(epochs=2), random_state=0).fit(TEXTS)
    network = GRU(4, bidirectional=True, output="mean")
    model = Classifier(network=network, inference=FineTune(base, STILL), random_state=0)
    model.fit(["the mat ran", "a fish swam"], ["mat", "fish"])
    assert model.vocabulary_ == base.vocabulary_
    assert model.posterior_.info["fine_tune"]["new"] == ["network.readout.weight", "network.readout.bias"]
    assert torch.equal(parameters(model)["network.embedding.weight"], parameters(base)["network.embedding.weight"])
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").predict_proba(TEXTS), model.predict_proba(TEXTS))
    with pytest.raises(SpecError, match="the start of FineTune has a WordVocabulary"):
        Classifier(network=network, inference=FineTune(base), tokens=Characters()).fit(TEXTS, [0, 1, 0, 1])


def test_a_language_model_goes_on_with_its_own_tokens():
    base = LanguageModel(GRU(4), tokens=Words(), context=8, inference=MAP(epochs=2), random_state=0).fit(TEXTS)
    on = LanguageModel(GRU(4), tokens=Words(), context=8, inference=FineTune(base, STILL), random_state=1)
    on.fit(["the mat ran", "a log"])
    assert on.vocabulary_ == base.vocabulary_
    np.testing.assert_array_equal(on.log_prob(TEXTS), base.log_prob(TEXTS))
    with pytest.raises(SpecError, match="the start of FineTune cuts text into words"):
        LanguageModel(GRU(4), tokens=Characters(), context=8, inference=FineTune(base)).fit(TEXTS)


# --- refusals -------------------------------------------------------------------------------------------------------
def test_what_cannot_be_is_named(base, X, y):
    with pytest.raises(SpecError, match=r"FineTune\(by=HMC\(\)\): it cannot begin at given weights; use MAP, Ensemble"):
        FineTune(base, HMC())
    with pytest.raises(SpecError, match=r"start must be a fitted model, the path of its file, or an inference"):
        FineTune(3)
    with pytest.raises(SpecError, match=r'train must be "all", "head" or LowRank\(\)'):
        FineTune(base, train=3)
    with pytest.raises(SpecError, match=r"rank must be a positive integer"):
        LowRank(0)
    with pytest.raises(SpecError, match=r"start is a Classifier that is not fitted; fit it first"):
        tuned(Classifier(), X, y)
    with pytest.raises(SpecError, match=r"start is a NaiveBayes that has no network with weights to begin at"):
        tuned(NaiveBayes().fit(X, y), X, y)
    with pytest.raises(SpecError, match=r"it has network\.embed.*; here are network\.0\.weight \(6, 3\), network\.0"):
        tuned(Classifier(network=Transformer(4, 2, 1), inference=QUICK).fit(X, y), X, y)


def test_a_body_that_begins_anew_is_warned_of(base, X, y):
    with pytest.warns(LikelyWarning, match=r"network.0.weight and 2 more begin anew: it is \(7, 3\) here and \(6, 3\)"):
        tuned(base, X, y, network=MLP((7, 5)))


def test_a_checkpoint_of_another_start_is_refused(base, X, y, tmp_path):
    by = QUICK.replace(checkpoint=str(tmp_path / "run"))
    first = tuned(base, X, y, by, "head")
    np.testing.assert_array_equal(tuned(base, X, y, by, "head").predict_proba(X), first.predict_proba(X))
    other = Classifier(network=NETWORK, inference=QUICK, random_state=5).fit(X, y)
    with pytest.raises(ValueError, match="another fit"):
        tuned(other, X, y, by, "head")
