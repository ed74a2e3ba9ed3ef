"""Bad input gets a clear error at the door: it names the argument, what was found and what would do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from likely import Classifier, Perceptron, Regressor
from likely.core.errors import DataError, LikelyError, LikelyWarning, SpecError, TrainingError
from likely.inference import MAP, Ensemble, Exact, MCDropout, Newton
from likely.likelihoods import (
    Beta,
    Binomial,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Product,
    StudentT,
)
from likely.networks import MLP, Linear
from likely.optim import SGD, Adam
from likely.priors import Normal as NormalPrior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=30)
LABELS = (Y + RNG.normal(size=30) > 0).astype(int)
NETWORK = {"network": MLP((4,)), "inference": MAP(epochs=2), "random_state": 0}

MODELS = [(Regressor(), Y), (Classifier(), LABELS), (Regressor(**NETWORK), Y), (Perceptron(), X[:, 0] > 0)]
EACH_MODEL = pytest.mark.parametrize(("model", "y"), MODELS, ids=["regressor", "classifier", "network", "perceptron"])


def with_value(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


# --- rows -------------------------------------------------------------------------------------------------------------
@EACH_MODEL
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.empty((0, 3)), r"X.*0 sample\(s\).*minimum of 1"),
        (torch.empty(0, 3), r"X is empty: its shape is \(0, 3\)"),
        (np.empty((30, 0)), r"X.*0 feature\(s\).*minimum of 1"),
        (with_value(X, (17, 2), np.nan), "X contains NaN at row 17, column 2; drop or fill such values"),
        (with_value(X, (4, 0), -np.inf), r"X contains infinity \(-inf\) at row 4, column 0; drop or fill"),
        (torch.tensor(with_value(X, (4, 0), np.inf)), r"X contains infinity \(inf\) at row 4, column 0"),
        (pd.DataFrame(with_value(X, (17, 2), np.nan), columns=list("abc")), "X contains NaN at row 17, column 'c'"),
        (X[:, 0], "(?s)X.*Reshape your data"),
        (torch.tensor(X[:, 0]), r"X must be a real.* tensor of rows \(n, …\); found torch.float64 of shape \(30,\)"),
        (X + 1j, "X.*Complex data not supported"),
        (torch.tensor(X + 1j), "X must be a real.* tensor of rows"),
        (torch.tensor(X).to_sparse(), "X must be a real, dense tensor of rows"),
        (np.full((30, 3), "abc"), "X has text where numbers are needed; .* use likely.TableModel"),
        (np.full((30, 3), "abc", dtype=object), "X has text where numbers are needed"),
        ([[{}, 1.0, 2.0]] * 30, "X has values that are not numbers"),
        (X.astype("datetime64[D]"), r"X has values of kind datetime64\[D\] where numbers are needed"),
    ],
    ids=[
        "empty", "empty tensor", "no columns", "nan", "inf", "inf tensor", "nan in frame", "one axis",
        "one axis tensor", "complex", "complex too", "sparse tensor", "text", "words", "dicts", "dates",
    ],
)  # fmt: skip
def test_rows(model, y, rows, message):
    with pytest.raises(DataError, match=message):
        clone(model).fit(rows, y)


@EACH_MODEL
def test_rows_of_different_lengths_need_a_network_of_sequences(model, y):
    with pytest.raises(LikelyError, match=r"cannot take sequences as rows: .* for sequences use|X: .*inhomogeneous"):
        clone(model).fit([[1.0], [1.0, 2.0]] * 15, y)


def test_sparse_rows_where_only_dense_ones_will_do():
    wanted = r"X is sparse, 30 × 3, and Perceptron takes dense rows; X.toarray\(\) makes them"
    with pytest.raises(DataError, match=wanted):
        Perceptron().fit(sparse.csr_array(X), X[:, 0] > 0)


@EACH_MODEL
def test_rows_to_predict(model, y):
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=f"X has 2 features, but {type(model).__name__} is expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(torch.tensor(X[:, :2]))
    with pytest.raises(DataError, match="X contains NaN at row 17, column 2"):
        model.predict(with_value(X, (17, 2), np.nan))
    with pytest.raises(DataError, match=r"X has .*shape \(30, 3, 1\)|X has rows of shape \(3, 1\)"):
        model.predict(X.reshape(30, 3, 1))


@pytest.mark.parametrize("method", ["predict", "predict_dist", "sample", "predict_proba", "predict_interval", "score"])
def test_questions_before_fit(method):
    for model in (Regressor(), Classifier()):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=f"This {type(model).__name__} instance is not fitted yet"):
                getattr(model, method)(X, *([Y] if method == "score" else []))


# --- little or degenerate data: an answer, never NaN ------------------------------------------------------------------
@pytest.mark.sensitive
@pytest.mark.parametrize(
    "model",
    [
        Regressor(),
        Regressor(prior=NormalPrior(1.0)),
        Regressor("student_t"),
        Regressor("poisson"),
        Regressor("gamma"),
        Regressor(network=MLP((4,)), inference=MAP(epochs=50), random_state=0),
        Regressor(network=MLP((4,)), inference=Ensemble(2, by=MAP(epochs=50)), random_state=0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_one_row_is_its_own_prediction(model):
    """The most probable parameters explain the only target fully, and its interval holds it."""
    model.fit(X[:1], [2.0])
    np.testing.assert_allclose(model.predict(X[:1]), 2.0, rtol=0.02)
    lower, upper = model.predict_interval(X[:1])
    assert lower <= 2.0 * (1 + 1e-6)
    assert upper >= 2.0 * (1 - 1e-6)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.log_prob(X[:1], [2.0])).all()


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6])
@pytest.mark.parametrize("settings", [{}, {"prior": NormalPrior(1.0)}, NETWORK], ids=["exact", "ridge", "network"])
def test_equal_targets_are_predicted(settings, value):
    with pytest.warns(LikelyWarning, match=f"y is {value} in every row"):
        model = Regressor(**settings).fit(X, np.full(30, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-6, atol=1e-6)
    assert np.isfinite(model.log_prob(X, np.full(30, value))).all()


def test_fewer_rows_than_columns_are_met_exactly():
    np.testing.assert_allclose(Regressor().fit(X[:2], Y[:2]).predict(X[:2]), Y[:2], rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"prior": NormalPrior(1.0)}], ids=["flat", "normal"])
def test_constant_and_repeated_columns_change_nothing(settings):
    """Under a flat prior a copy of a column says nothing new; a constant column never does."""
    wide = np.column_stack([X, np.full(30, 3.0)] + ([X[:, 0]] if not settings else []))
    for kind, y in ((Regressor, Y), (Classifier, LABELS)):
        narrow, wider = kind(**settings).fit(X, y), kind(**settings).fit(wide, y)
        answer = "predict" if kind is Regressor else "predict_proba"
        np.testing.assert_allclose(getattr(wider, answer)(wide), getattr(narrow, answer)(X), rtol=1e-5)


# --- targets outside the support --------------------------------------------------------------------------------------
SUPPORT = [
    (Poisson(), -1.0, r"y has a negative value \(-1.0 at row 17\); Poisson needs counts 0, 1, 2, …"),
    (Poisson(), 1.5, r"y has a value that is not an integer \(1.5 at row 17\); Poisson needs counts 0, 1, 2, …"),
    (NegativeBinomial(), -2.0, r"y has a negative value \(-2.0 at row 17\); NegativeBinomial needs counts 0, 1, 2, …"),
    (Binomial(total=5), 6.0, r"y has a value outside the support \(6.0 at row 17\); Binomial needs counts 0, …, 5"),
    (Gamma(), 0.0, r"y has a value outside the support \(0.0 at row 17\); Gamma needs positive numbers"),
    (Gamma(), -1.0, r"y has a negative value \(-1.0 at row 17\); Gamma needs positive numbers"),
    (Exponential(), -1.0, r"y has a negative value \(-1.0 at row 17\); Exponential needs numbers 0 or above"),
    (Beta(), 1.5, r"y has a value outside the support \(1.5 at row 17\); Beta needs numbers strictly between 0 and 1"),
    (Normal(), np.inf, r"y has an infinite value \(inf at row 17\); Normal needs real numbers"),
    (StudentT(), -np.inf, r"y has an infinite value \(-inf at row 17\); StudentT needs real numbers"),
    (Laplace(), np.inf, r"y has an infinite value \(inf at row 17\); Laplace needs real numbers"),
]


@pytest.mark.parametrize(("likelihood", "value", "message"), SUPPORT, ids=lambda part: str(part)[:24])
def test_targets_outside_the_support(likelihood, value, message):
    good = np.linspace(0.3, 0.7, 30) if isinstance(likelihood, Beta) else np.arange(30.0) % 3 + 1
    with pytest.raises(DataError, match=message):
        Regressor(likelihood).fit(X, with_value(good, 17, value))
    model = Regressor(likelihood, inference=MAP(epochs=1)).fit(X, good)
    with pytest.raises(DataError, match=message):
        model.log_prob(X, with_value(good, 17, value))


def test_vectors_outside_the_support():
    both = np.column_stack([Y, Y])
    with pytest.raises(DataError, match=r"y has an infinite value \(inf at row 3\); MultivariateNormal needs vectors"):
        Regressor(MultivariateNormal()).fit(X, with_value(both, (3, 1), np.inf))
    product = Product({"height": Normal(), "visits": Poisson()})
    with pytest.raises(DataError, match=r"column 'visits' of y has a negative value .*; Poisson needs counts"):
        Regressor(product).fit(X, with_value(np.abs(both.round()), (3, 1), -1))
    with pytest.raises(DataError, match=r"y has shape \(30, 3\); Product needs 2 columns"):
        Regressor(product).fit(X, np.ones((30, 3)))


# --- targets of the wrong kind ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (Y[:5], "y has 5 rows, but X has 30 rows; inconsistent numbers of samples"),
        (3.0, "y has a single value, but X has 30 rows"),
        (Y + 1j, "y: Complex data not supported"),
        (np.arange(30).astype("datetime64[D]"), "y has dates"),
        ([[1.0], [1.0, 2.0]] * 15, "y has entries of different lengths; each row needs as many as the others"),
    ],
    ids=["none", "rows", "single", "complex", "dates", "ragged"],
)
@pytest.mark.parametrize("model", [Regressor(), Classifier()], ids=["regressor", "classifier"])
def test_targets_of_the_wrong_kind(model, y, message):
    with pytest.raises(DataError, match=message):
        model.fit(X, y)


def test_text_for_numbers_and_numbers_for_labels():
    with pytest.raises(DataError, match=r"y has text \('a'\) where numbers are needed; for labels use Classifier"):
        Regressor().fit(X, ["a"] * 30)
    with pytest.raises(DataError, match=r"y is continuous .* and a classifier needs labels; for numbers use Regressor"):
        Classifier().fit(X, Y)
    with pytest.raises(DataError, match="y: Sparse data was passed for y, but dense data is required"):
        Regressor().fit(X, sparse.csr_array(Y[:, None]))


@pytest.mark.parametrize("label", ["a", 1, True])
def test_one_class(label):
    with pytest.raises(
        DataError, match=rf"y has only one class \({label!r}\); a classifier needs at least two classes"
    ):
        Classifier().fit(X, np.array([label] * 30))


def test_classes_that_were_not_seen():
    model = Classifier().fit(X, np.array(["no", "yes"])[LABELS])
    with pytest.raises(
        DataError, match="y has the class 'maybe' at row 29, which was not seen in fit; known: 'no', 'yes'"
    ):
        model.log_prob(X, ["no"] * 29 + ["maybe"])


def test_missing_label():
    with pytest.raises(SpecError, match="missing_label='a' must be an integer, such as −1, or None"):
        Classifier(missing_label="a").fit(X, LABELS)


# --- weights ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", [Regressor(), Classifier(**NETWORK)], ids=["exact", "network"])
@pytest.mark.parametrize(
    "weight",
    [
        with_value(np.ones(30), 3, -1.0),
        np.zeros(30),
        np.ones(4),
        with_value(np.ones(30), 3, np.nan),
        np.ones((30, 1)),
        "x",
    ],
    ids=["negative", "all zero", "length", "nan", "column", "text"],
)
def test_weights(model, weight):
    with pytest.raises(DataError, match=r"sample_weight") as caught:
        model.fit(X, LABELS, sample_weight=weight)
    assert "\n" not in str(caught.value)


# --- specs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"likelihood": "poison"}, "Unknown likelihood 'poison'. Did you mean Poisson"),
        ({"likelihood": Poisson}, r"likelihood=Poisson is a class; write likelihood=Poisson\(\)"),
        ({"likelihood": None}, r"likelihood must be one of the likelihood specs \(.*Poisson.*\); found None"),
        (
            {"likelihood": NormalPrior()},
            r"likelihood must be one of the likelihood specs .*; found the prior Normal\(\)",
        ),
        ({"network": "mpl"}, "Unknown network 'mpl'. Did you mean MLP"),
        ({"network": MLP}, r"network=MLP is a class; write network=MLP\(\)"),
        ({"network": 64}, r"network must be one of the network specs \(.*MLP.*\); found 64"),
        ({"network": "mlp(hiden=[3])"}, "MLP has no argument 'hiden'; it has hidden,"),
        ({"network": MLP((10**9,))}, r"would have 4,000,000,000 weights; it must keep them at"),
        ({"prior": "norml"}, "Unknown prior 'norml'. Did you mean Normal"),
        ({"prior": NormalPrior}, r"prior=Normal is a class; write prior=Normal\(\)"),
        ({"prior": Normal()}, r"prior must be one of the prior specs .*; found the likelihood Normal\(\)"),
        ({"prior": 1.0}, "prior must be one of the prior specs .*; found 1.0"),
        ({"inference": "exat"}, "Unknown inference 'exat'. Did you mean Exact"),
        ({"inference": MAP}, r"inference=MAP is a class; write inference=MAP\(\)"),
        ({"inference": Linear()}, r"inference must be one of the inference specs .*; found the network Linear\(\)"),
        ({"random_state": "seven"}, "random_state='seven' is not a seed; use an integer"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_specs(arguments, message):
    with pytest.raises(SpecError, match=message):
        Regressor(**arguments).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MAP("adm"), "Unknown optimizer 'adm'. Did you mean Adam"),
        (lambda: MAP(Adam), r"optimizer=Adam is a class; write optimizer=Adam\(\)"),
        (lambda: MAP(0.1), "optimizer must be one of the optimizer specs .*; found 0.1"),
        (lambda: MAP(epochs=-1), r"MAP\(epochs=-1\): epochs must be a positive integer"),
        (lambda: MAP(batch_size=0), r"MAP\(batch_size=0\): batch_size must be a positive integer, or None"),
        (
            lambda: MAP(validation=1.5),
            r"MAP\(validation=1.5\): validation must be a fraction between 0 and 1, or \(X, y\)",
        ),
        (lambda: Adam(-1.0), r"Adam\(lr=-1.0\): lr must be a positive number"),
        (lambda: Ensemble(0), r"Ensemble\(members=0\): members must be a positive integer"),
        (lambda: MCDropout(0), r"MCDropout\(draws=0\): draws must be a positive integer"),
        (lambda: Newton(max_iter=0), r"Newton\(max_iter=0\): max_iter must be positive"),
        (lambda: Exact("half"), r"Exact\(posterior='half'\): posterior must be \"point\" or \"full\""),
        (lambda: MLP((0,)), r"MLP\(hidden=\(0,\)\): hidden must be a tuple of positive integers"),
        (lambda: MLP(dropout=1.0), r"MLP\(dropout=1.0\): dropout must be a probability"),
        (lambda: NormalPrior(0.0), r"Normal\(scale=0.0\): scale must be"),
        (lambda: Normal(scale=-1.0), r"Normal\(scale=-1.0\): scale must be"),
    ],
    ids=lambda part: "" if callable(part) else str(part)[:30],
)
def test_values_of_specs(make, message):
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize("device", ["nonsense", None, "meta"])
def test_device(device):
    with pytest.raises(LikelyError, match=f'device={device!r} .*use "auto", "cpu" or "cuda"'):
        Regressor(device=device).fit(X, Y)


# --- questions --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [1.5, 1, 0, -0.1, np.nan, "wide", np.array([0.1, 0.9]), None], ids=str)
def test_level(level):
    with pytest.raises(DataError, match=r"level=.* must be one number strictly between 0 and 1, such as 0\.9"):
        Regressor().fit(X, Y).predict_interval(X, level=level)


@pytest.mark.parametrize("n", [0, -1, 1.5, "many", None], ids=str)
def test_number_of_draws(n):
    with pytest.raises(DataError, match=f"n={n!r}: how many to draw must be an integer above 0"):
        Regressor().fit(X, Y).sample(X, n)


# --- numbers beyond the machine ---------------------------------------------------------------------------------------
def test_a_loss_that_is_not_finite_ends_training():
    model = Regressor(network=MLP((8,)), inference=MAP(SGD(1e30), epochs=50), random_state=0)
    with pytest.raises(TrainingError, match=r"The loss is .* at step .* with learning rate 1e\+30. Try a smaller"):
        model.fit(X, Y)
    assert not hasattr(model, "posterior_")


@pytest.mark.parametrize("settings", [{}, {"likelihood": "student_t"}, NETWORK], ids=["exact", "newton", "network"])
def test_inputs_beyond_the_range_of_numbers(settings):
    with pytest.raises((TrainingError, DataError), match="standardise"):
        Regressor(**settings).fit(X * 1e200, Y)


@EACH_MODEL
def test_a_fit_that_fails_leaves_no_model_behind(model, y, tmp_path):
    model = clone(model).fit(X, y)
    with pytest.raises(DataError):
        model.fit(X[:, :2], y[:5])
    for question in (model.predict, lambda rows: model.save(tmp_path / "model.likely")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            question(X[:, :2])


def test_validation_needs_rows_to_train_on():
    with pytest.raises(DataError, match="of 1 rows leaves nothing to train on"):
        Regressor(network=MLP((4,)), inference=MAP(patience=2)).fit(X[:1], Y[:1])
