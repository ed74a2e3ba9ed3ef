from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import likely
from likely import Classifier, MaskedLanguageModel, Regressor
from likely.core.errors import DataError, ModelFileError, SpecError
from likely.data.text import Bag, Characters, Words
from likely.inference import HMC, MAP, Ensemble, FineTune, Newton
from likely.likelihoods import Chain
from likely.networks import GRU, LSTM, MLP, Linear, Transformer
from likely.optim import LBFGS, Adam
from likely.priors import Normal

GOOD, BAD = "a good warm film", "a dull cold film"
TEXTS = [
    "good and warm",
    "a good film",
    "warm , funny film",
    "so good",
    "dull and cold",
    "a dull film",
    "cold film",
] * 2
LABELS = ["+", "+", "+", "+", "-", "-", "-"] * 2
SENTENCES = [["Ann", "sees", "Bob"], ["Bob", "runs"], ["she", "sees", "Ann"], ["Bob", "sees"]] * 3
TAGS = [["N", "V", "N"], ["N", "V"], ["N", "V", "N"], ["N", "V"]] * 3
FEW = MAP(epochs=30, batch_size=None)
TAGGING = MAP(Adam(0.05), epochs=60, batch_size=None)


def test_strings_are_rows():
    model = Classifier().fit(TEXTS, LABELS)
    assert model.predict([GOOD, BAD]).tolist() == ["+", "-"]
    assert model.score(TEXTS, LABELS) == 1.0
    np.testing.assert_allclose(model.predict_proba([GOOD]).sum(), 1.0)
    np.testing.assert_allclose(model.log_prob([GOOD], ["+"]), np.log(model.predict_proba([GOOD])[:, 0]))
    assert model.sample([GOOD, BAD], 5, random_state=0).shape == (5, 2)


@pytest.mark.parametrize("form", [tuple, np.array, lambda texts: np.array(texts, object)])
def test_every_list_of_strings_will_do(form):
    model = Classifier().fit(form(TEXTS), LABELS)
    np.testing.assert_array_equal(
        model.predict_proba(form(TEXTS)), Classifier().fit(TEXTS, LABELS).predict_proba(TEXTS)
    )


def test_columns_of_frames_are_lists_of_strings():
    import pandas as pd
    import polars as pl

    expected = Classifier().fit(TEXTS, LABELS).predict_proba([GOOD])
    for series in (pd.Series, pl.Series):
        np.testing.assert_array_equal(Classifier().fit(series(TEXTS), LABELS).predict_proba(series([GOOD])), expected)


def test_a_text_of_which_nothing_is_known_says_nothing():
    model = Classifier().fit(TEXTS, LABELS)
    nothing = model.predict_proba(["", "   ", "zzz qqq"])
    np.testing.assert_array_equal(nothing, nothing[:1].repeat(3, 0))
    assert abs(nothing[0, 0] - 8 / 14) < 0.2


@pytest.mark.parametrize("inference", [MAP(LBFGS(), epochs=200, batch_size=None, tol=1e-6), "auto"])
def test_sparse_rows_are_fitted_as_dense_ones(inference):
    rows = Bag().fit(TEXTS).rows(TEXTS)
    sparse = Classifier(prior=Normal(1.0), inference=inference).fit(rows, LABELS)
    dense = Classifier(prior=Normal(1.0), inference=Newton()).fit(rows.dense().numpy(), LABELS)
    np.testing.assert_allclose(sparse.predict_proba(rows), dense.predict_proba(rows.dense().numpy()), atol=1e-3)


def test_numbers_from_texts():
    prices = [10.0 * (label == "+") + 5 for label in LABELS]
    model = Regressor().fit(TEXTS, prices)
    good, bad = model.predict([GOOD, BAD])
    assert good > 11 > 9 > bad
    wide = Regressor(tokens=Bag(Characters(unknown=True))).fit(TEXTS, prices)
    assert wide.score(TEXTS, prices) > 0.9


@pytest.mark.parametrize("inference", [Ensemble(2, by=FEW), HMC(chains=2, draws=5, warmup=5)], ids=["ensemble", "hmc"])
@pytest.mark.parametrize("network", [Linear(), MLP((3,))], ids=repr)
def test_any_inference_takes_bags(network, inference):
    model = Classifier(network=network, inference=inference, prior=Normal(1.0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws are not enough, and some say so
        model.fit(TEXTS, LABELS)
    assert model.predict_proba([GOOD, BAD, ""]).shape == (3, 2)


@pytest.mark.parametrize("network", [LSTM(4), Transformer(width=8, heads=2, layers=1)], ids=repr)
@pytest.mark.parametrize("tokens", ["auto", Characters(unknown=True), "words(min_count=2)"], ids=repr)
def test_networks_over_steps_read_tokens(network, tokens):
    model = Classifier(network=network, tokens=tokens, inference=MAP(epochs=3), random_state=0).fit(TEXTS, LABELS)
    assert model.predict_proba(["a good film", "", "zzz"]).shape == (3, 2)
    torch.testing.assert_close(
        torch.from_numpy(model.predict_proba(["good", "a dull cold film"])[0]),
        torch.from_numpy(model.predict_proba(["good"])[0]),
    )


def test_words_are_tagged():
    model = Classifier(
        Chain(), LSTM(8, bidirectional=True, output="each"), inference=TAGGING, tokens=Words(), random_state=0
    )
    model.fit(SENTENCES, TAGS)
    predicted = model.predict([["Ann", "sees", "Zoe"], ["she"]])
    assert [len(tags) for tags in predicted] == [3, 1]
    assert model.score(SENTENCES, TAGS) == 1.0
    joined = [" ".join(sentence) for sentence in SENTENCES]
    again = model.set_params(tokens=Words(cut="spaces")).fit(joined, TAGS).predict(["Ann sees Zoe", "she"])
    assert [tags.tolist() for tags in again] == [tags.tolist() for tags in predicted]
    by_forms = model.set_params(tokens="auto").fit(SENTENCES, TAGS)
    assert by_forms.vocabulary_.rows(["Zoe"]).values.shape == (1, 9)
    assert by_forms.score(SENTENCES, TAGS) == 1.0


@pytest.mark.parametrize(
    "model",
    [
        Classifier(),
        Classifier(network=MLP((3,)), inference=FEW, random_state=0),
        Classifier(network=LSTM(3), inference=FEW, tokens=Characters(unknown=True), random_state=0),
        Classifier(network=Transformer(4, 2, 1), inference=FEW, random_state=0),
    ],
    ids=lambda model: type(model.network).__name__,
)
def test_a_file_brings_back_the_vocabulary(model, tmp_path):
    model = clone(model).fit(TEXTS, LABELS)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict_proba([GOOD, "zzz", ""]), model.predict_proba([GOOD, "zzz", ""]))
    assert loaded.vocabulary_ == model.vocabulary_


@pytest.mark.parametrize(
    "change", [{"codes": [0, 0]}, {"codes": []}, {"pairs": 1}, {"tokens": None}, {"kind": "x"}, None]
)
def test_a_file_with_another_vocabulary_is_refused(change):
    model = Classifier().fit(TEXTS, LABELS)
    learned, tensors = model._state()
    learned["vocabulary"] = None if change is None else learned["vocabulary"] | change
    with pytest.raises(ModelFileError, match="The file"):
        clone(model)._restore(learned, tensors)


def test_fine_tuning_begins_with_the_words_of_its_start():
    brief = MAP(epochs=1)
    base = MaskedLanguageModel(GRU(4), context=8, inference=brief, random_state=0).fit([*TEXTS, "zebra"])
    model = Classifier(network=GRU(4, bidirectional=True), inference=FineTune(base, by=brief), random_state=0)
    model.fit(TEXTS, LABELS)
    assert model.vocabulary_ == base.vocabulary_
    assert model.posterior_.info["fine_tune"]["new"] == ["network.readout.weight", "network.readout.bias"]
    with pytest.raises(SpecError, match=r"tokens=Characters\(\), but the start of FineTune has a WordVocabulary"):
        model.set_params(tokens=Characters()).fit(TEXTS, LABELS)


def test_it_is_an_estimator_like_all_others():
    folds = cross_validate(Classifier(), TEXTS, LABELS, cv=2)
    assert folds["test_score"].min() > 0.7
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.upper() for text in texts]), Classifier())
    assert pipeline.fit(TEXTS, LABELS).predict([GOOD, BAD]).tolist() == ["+", "-"]
    search = GridSearchCV(Classifier(tokens=Bag()), {"tokens__pairs": [True, False]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_score_ > 0.7
    numbers = Classifier().fit(TEXTS, LABELS).fit(np.arange(14.0).reshape(-1, 1), LABELS)
    assert not hasattr(numbers, "vocabulary_")


def test_weights_count_texts_and_missing_labels_do_not():
    plain = Classifier().fit(TEXTS, LABELS).predict_proba([GOOD])
    weighted = Classifier().fit([*TEXTS, GOOD], [*LABELS, "-"], sample_weight=[1.0] * 14 + [0.0])
    missing = Classifier().fit([*TEXTS, "a dull film"], [*LABELS, None])
    np.testing.assert_allclose(missing.predict_proba([GOOD]), plain, atol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba([GOOD]), plain, atol=0.05)  # it has one more word, "good warm"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a single text", "X is one string, 'a single text'; it must be a list with a string for each row"),
        ([GOOD, None], r'X\[1\] is None, and other rows are text; it must be a string: leave it out, or give ""'),
        ([GOOD, float("nan")], r"X\[1\] is nan, and other rows are text"),
        ([GOOD, 3], r"X\[1\] is 3, and other rows are text"),
        (["", ""], "X has no text: every row is empty"),
    ],
)
def test_what_is_no_text_is_named(X, message):
    with pytest.raises(DataError, match=message):
        Classifier().fit(X, ["a", "b"])


def test_texts_and_numbers_are_not_mixed_up():
    with pytest.raises(DataError, match="X must be a list of strings, one for each row: the model was fitted on texts"):
        Classifier().fit(TEXTS, LABELS).predict([[1.0]])
    with pytest.raises(DataError, match="X has text; the model was fitted on numbers"):
        Classifier(prior=Normal()).fit([[1.0], [2.0]], ["a", "b"]).predict([GOOD])
    with pytest.raises(DataError, match=r"tokens=Words\(\) is for texts: X must be a list of strings"):
        Classifier(tokens=Words()).fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(SpecError, match=r"tokens=Bag\(\) forgets the order of words, which LSTM\(\) reads; use Words"):
        Classifier(network=LSTM(), tokens=Bag()).fit(TEXTS, LABELS)
    with pytest.raises(SpecError, match=r"LSTM\(tokens=3\) reads 3 tokens, and the texts have \d+: leave tokens=None"):
        Classifier(network=LSTM(tokens=3)).fit(TEXTS, LABELS)
    with pytest.raises(DataError, match=r"X\[0\] has the character 'ß' at position 0, which no training text has"):
        Classifier(network=LSTM(2), tokens=Characters(), inference=MAP(epochs=1)).fit(TEXTS, LABELS).predict(["ß"])
    with pytest.raises(DataError, match=r"X has lists of words, which are the tokens of Words\(\), and not of Char"):
        Classifier(network=LSTM(2), tokens=Characters()).fit(SENTENCES, TAGS)
