"""A student follows its teacher: gradients, loss and limits written out; teachers of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec
from likely.data.graph import Graph
from likely.inference import MAP, Distill, Ensemble, Newton
from likely.likelihoods import Bernoulli, Categorical, Normal, Ordinal, Poisson
from likely.networks import MLP
from likely.networks.layers.steps import at_each, steps_of
from likely.optim import LBFGS, SGD, Adam
from likely.priors import Normal as NormalPrior


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 2))


@pytest.fixture
def three(rng, X):
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])]


@pytest.fixture
def clear(X):
    """The same classes without noise."""
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]


@pytest.fixture
def numbers(rng, X):
    return X @ [1.0, -2.0] + 0.3 * rng.normal(size=60)


class Told:
    """A teacher that says what it was told to, whatever it is asked."""

    def __init__(self, answers, classes=None):
        self.answers, self.asked = np.asarray(answers, dtype=float), []
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict_proba(self, X):
        self.asked.append(X)
        return self.answers[: len(X)]

    predict = predict_proba


def taught(problem_of, model, X, y, **options):
    """The taught problem in float64."""
    return Distill(**options).taught(problem_of(model, X, y))


# --- the loss -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0, 20.0])
def test_the_gradient_is_temperature_times_the_gap_of_soft_labels(temperature, rng, problem_of):
    """∂(T²·CE)/∂z = T·(softmax(z/T) − softmax(v/T))."""
    v, z = torch.tensor(rng.normal(size=(6, 3)) * 3), torch.tensor(rng.normal(size=(6, 3)), requires_grad=True)
    X, y = np.zeros((6, 1)), np.array([0, 1, 2, 0, 1, 2])
    problem = taught(problem_of, Classifier(), X, y, teacher=Told(v.softmax(-1)), temperature=temperature, mix=1.0)
    loss = -problem.objective.log_likelihood(z, problem.data.batch(slice(None)))
    (slope,) = torch.autograd.grad(loss, z)
    expected = temperature * ((z / temperature).softmax(-1) - (v / temperature).softmax(-1))
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=1e-8)


def test_the_loss_mixes_the_teacher_and_the_labels(rng, problem_of):
    T, mix = 2.5, 0.3
    v, z = (torch.tensor(rng.normal(size=(6, 3))) for _ in range(2))
    y = np.array([0, 1, 2, 0, 1, 2])
    weight = rng.uniform(size=6)
    problem = problem_of(Classifier(), np.zeros((6, 1)), y, sample_weight=weight)
    problem = Distill(Told(v.softmax(-1)), T, mix).taught(problem)
    lesson = -((v / T).softmax(-1) * (z / T).log_softmax(-1)).sum(-1)
    labels = nn.functional.cross_entropy(z, torch.tensor(y), reduction="none")
    expected = (torch.tensor(weight) * (mix * T**2 * lesson + (1 - mix) * labels)).sum()
    torch.testing.assert_close(-problem.objective.log_likelihood(z, problem.data.batch(slice(None))), expected)


def test_at_high_temperature_logits_are_matched():
    """T·(softmax(z/T) − softmax(v/T)) → (z − v)/K for logits of mean 0, as T grows; the error falls as 1/T."""
    v, z = torch.tensor([[1.0, -2.0, 1.0]]).double(), torch.tensor([[0.5, 0.5, -1.0]]).double()
    gaps = []
    for T in (100.0, 1000.0):
        slope = T * ((z / T).softmax(-1) - (v / T).softmax(-1))
        gaps.append(float((slope - (z - v) / 3).abs().max()))
    assert gaps[0] < 0.02
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.05)


@pytest.mark.parametrize("T", [1.0, 4.0])
def test_one_logit_is_taught_as_two_are(T, rng, problem_of):
    v, z = torch.tensor(rng.normal(size=5)), torch.tensor(rng.normal(size=5))
    teacher = Told(torch.stack([torch.zeros(5), v], -1).softmax(-1))
    X, y = np.zeros((5, 1)), np.array([0, 1, 0, 1, 1])
    eta = {Bernoulli(): z[:, None], Categorical(): torch.stack([torch.zeros(5), z], -1)}
    log_probs = []
    for likelihood, own in eta.items():
        problem = taught(problem_of, Classifier(likelihood), X, y, teacher=teacher, temperature=T)
        log_probs.append(problem.objective.target_log_prob(own.double(), problem.data.y))
    torch.testing.assert_close(*log_probs)


def test_numbers_are_taught_by_the_mean_in_units_of_the_noise(rng, problem_of, X, numbers):
    """(1 − mix)·NLL + mix·½((m − μ)/s)², s the root mean square of what the teacher leaves of y."""
    m = numbers + rng.normal(size=60)
    weight = rng.uniform(size=60)
    problem = problem_of(Regressor(Normal(0.5)), X, numbers, sample_weight=weight)
    problem = Distill(Told(m), mix=0.3).taught(problem)
    mu = torch.tensor(rng.normal(size=(60, 1)))
    s = np.sqrt(np.average((numbers - m) ** 2, weights=weight))
    nll = 0.5 * ((numbers - mu[:, 0].numpy()) / 0.5) ** 2 + np.log(0.5 * np.sqrt(2 * np.pi))
    expected = 0.7 * nll + 0.3 * 0.5 * ((m - mu[:, 0].numpy()) / s) ** 2
    np.testing.assert_allclose(-problem.objective.target_log_prob(mu, problem.data.y), expected, rtol=1e-10)


def test_a_teacher_that_repeats_its_targets_does_not_drown_them(problem_of, X, numbers):
    problem = taught(problem_of, Regressor(), X, numbers, teacher=Told(numbers))
    np.testing.assert_allclose(problem.data.y[:, 2], 0.01 * numbers.std())


# --- fits -----------------------------------------------------------------------------------------------------------
def test_without_a_share_the_teacher_does_not_matter(X, three):
    teacher = LogisticRegression().fit(X, np.roll(three, 7))
    by = MAP(SGD(0.1), epochs=5)
    alone, with_teacher = (
        Classifier(network=MLP((4,)), inference=inference, random_state=0).fit(X, three)
        for inference in (by, Distill(teacher, mix=0.0, by=by))
    )
    np.testing.assert_allclose(with_teacher.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_a_student_of_the_same_kind_becomes_its_teacher(X, three, numbers):
    by = MAP(SGD(1.0), epochs=600, batch_size=None)
    teacher = LogisticRegression().fit(X, three)
    student = Classifier(inference=Distill(teacher, 1.0, 1.0, by), random_state=0).fit(X, np.roll(three, 5))
    np.testing.assert_allclose(student.predict_proba(X), teacher.predict_proba(X), atol=1e-3)
    line = LinearRegression().fit(X, numbers)
    copy = Regressor(Normal(1.0), inference=Distill(line, mix=1.0, by=by)).fit(X, -numbers)
    np.testing.assert_allclose(copy.predict(X), line.predict(X), atol=1e-3)


def test_a_taught_student_is_nearer_to_its_teacher_and_better():
    """100 digits for the student, a teacher that has seen 1,000: so much better that two seeds are enough."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = (X[order] / 16).astype(np.float32), y[order]
    by = MAP(Adam(0.005), epochs=40)
    teacher = Classifier(network=MLP((64,)), inference=by, random_state=0).fit(X[:1000], y[:1000])
    new, truth = X[1000:], y[1000:]
    told, by = teacher.predict_proba(new), MAP(Adam(0.01), epochs=200, batch_size=50)
    for seed in range(2):
        alone, student = (
            Classifier(network=MLP((8,)), inference=inference, random_state=seed).fit(X[:100], y[:100])
            for inference in (by, Distill(teacher, 4.0, by=by))
        )
        far, near = ((told * (np.log(told) - model.predict_log_proba(new))).sum(1).mean() for model in (alone, student))
        assert near < 0.8 * far
        assert student.log_prob(new, truth).mean() > alone.log_prob(new, truth).mean() + 0.1
        assert student.score(new, truth) > alone.score(new, truth) + 0.02


@pytest.mark.parametrize(
    "inference", ["newton()", "hmc(chains=2, draws=10, warmup=20)", "laplace()", "variational(steps=200)"]
)
def test_any_inference_can_be_taught(inference, X, three):
    """They agreed on 0.97 ± 0.02 of the rows over 24 seeds."""
    teacher = LogisticRegression().fit(X, three)
    model = Classifier(
        prior=NormalPrior(1.0, biases=NormalPrior(1.0)), inference=Distill(teacher, by=inference), random_state=0
    ).fit(X, three)
    assert np.mean(model.predict(X) == teacher.predict(X)) > 0.8


def test_newton_finds_the_minimum_of_the_mixed_loss(X, three):
    """Convex, so the gradient with respect to the weights, written out, vanishes at what Newton finds."""
    T, mix, teacher = 3.0, 0.4, LogisticRegression(C=0.1).fit(X, three)
    model = Classifier(prior=NormalPrior(10.0), inference=Distill(teacher, T, mix, Newton())).fit(X, three)
    design = np.column_stack([X, np.ones(60)])
    z = design @ np.column_stack([model.coef_, model.intercept_]).T

    def softmax(logits):
        e = np.exp(logits - logits.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    hot = (three[:, None] == teacher.classes_).astype(float)
    soft = softmax(teacher.predict_log_proba(X) / T)
    slope = design.T @ (mix * T * (softmax(z / T) - soft) + (1 - mix) * (softmax(z) - hot))
    slope[:2] += model.coef_.T / 100
    assert abs(slope).max() < 1e-5


def test_born_again_and_ensembles_as_teachers(X, clear):
    """Scores were 0.98 or more over 15 seeds."""
    by = MAP(Adam(0.05), epochs=60)
    options = {"network": MLP((16,)), "random_state": 0}
    again, same = (Classifier(inference=Distill(by=by), **options).fit(X, clear) for _ in range(2))
    np.testing.assert_array_equal(again.predict_proba(X), same.predict_proba(X))
    small = Classifier(inference=Distill("ensemble(3, by=map(adam(0.05), epochs=30))", by=by), **options).fit(X, clear)
    assert len(small.posterior_) == 1
    assert small.score(X, clear) > 0.8


def test_members_share_one_teacher_and_one_program(X, three):
    teacher = Told(np.full((60, 3), 1 / 3))
    inference = Ensemble(3, by=Distill(teacher, by=MAP(epochs=2)))
    model = Classifier(network=MLP((4,)), inference=inference, random_state=0).fit(X, three)
    assert len(model.posterior_) == 3
    assert "history" in model.posterior_.info
    assert len(teacher.asked) == 1


# --- teachers and rows of every kind --------------------------------------------------------------------------------
def test_the_teacher_may_know_fewer_classes_and_name_columns(X, three, problem_of):
    import pandas as pd

    table, some = pd.DataFrame(X, columns=["u", "v"]), three != "b"
    teacher = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(table[some], three[some])
    soft = taught(problem_of, Classifier(), table, three, teacher=teacher, temperature=1.0).data.y[:, 1:]
    np.testing.assert_allclose(soft[:, [0, 2]], teacher.predict_proba(table), atol=1e-12)
    assert bool((soft[:, 1] == 0).all())


def test_a_teacher_of_images_teaches_a_student_of_flat_rows(problem_of):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = (X[:40] / 16).astype(np.float32), y[:40]
    quick = MAP(epochs=2)
    images = Classifier(network=MLP((8,)), inference=quick, random_state=0).fit(X.reshape(-1, 1, 8, 8), y)
    flat = LogisticRegression().fit(X, y)
    pairs = [
        (images, X, images.predict_proba(X.reshape(-1, 1, 8, 8))),
        (flat, X.reshape(-1, 1, 8, 8), flat.predict_proba(X)),
    ]
    for teacher, rows, expected in pairs:
        problem = taught(problem_of, Classifier(network=MLP((4,))), rows, y, teacher=teacher, temperature=1.0)
        np.testing.assert_allclose(problem.data.y[:, 1:], expected, atol=1e-6)


class AtEachStep(nn.Module):
    """One linear answer for each step of sequences, or for each node of graphs."""

    def __init__(self, features, out_features):
        super().__init__()
        self.layer = nn.Linear(features, out_features)

    def forward(self, x):
        if x.__class__.__name__ == "Graphs":
            return self.layer(x.features)
        return at_each(x, self.layer(steps_of(x)[0]))


def sequences(rng):
    X = [rng.normal(size=(length, 2)) for length in (3, 5, 2, 4, 6)]
    return X, [(sequence[:, 0] > 0).astype(int) for sequence in X], lambda shape, out: AtEachStep(shape[-1], out)


def graphs(rng):
    X = [Graph(rng.normal(size=(nodes, 2)), [[0, 1], [1, 0]]) for nodes in (3, 4, 2, 5)]
    y = [(graph.features[:, 0] > 0).long().numpy() for graph in X]
    return X, y, lambda shape, out: AtEachStep(shape[0], out)


@pytest.mark.parametrize("kind", [sequences, graphs])
def test_labels_at_each_position_of_sequences_and_graphs(kind, rng):
    X, y, network = kind(rng)
    by = MAP(Adam(0.1), epochs=40)
    teacher = Classifier(network=network, inference=by, random_state=1).fit(X, y)
    for inference in (Distill(teacher, by=by), Distill(by=by)):
        student = Classifier(network=network, inference=inference, random_state=0).fit(X, y)
        assert student.score(X, y) > 0.8


def test_missing_labels_and_several_outputs(X, three, rng):
    y = np.column_stack([three, three[::-1]]).astype(object)
    y[::7, 1] = None
    model = Classifier(network=MLP((8,)), inference=Distill(by=MAP(epochs=5)), random_state=0).fit(X, y)
    assert model.predict(X).shape == (60, 2)
    Y = rng.normal(size=(60, 2))
    Y[::5, 0] = np.nan
    line = LinearRegression().fit(X, np.nan_to_num(Y))
    assert np.isfinite(Regressor(inference=Distill(line, by=MAP(epochs=5))).fit(X, Y).predict(X)).all()


@pytest.mark.parametrize("likelihood", [Ordinal(["a", "b", "c"]), Categorical(), "auto"], ids=str)
def test_every_likelihood_of_labels(likelihood, X, clear):
    """A line has 0.89 ± 0.05 of them right over 16 seeds, a constant half of them at most."""
    teacher = RandomForestClassifier(20, random_state=0).fit(X, clear)
    by = MAP(Adam(0.05), epochs=60)
    model = Classifier(likelihood, inference=Distill(teacher, by=by), random_state=0).fit(X, clear)
    assert model.score(X, clear) > 0.6


def test_counts(X, rng):
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    teacher, by = Regressor(Poisson()).fit(X, y), MAP(LBFGS(), epochs=30, batch_size=None)
    student = Regressor(Poisson(), inference=Distill(teacher, mix=1.0, by=by)).fit(X, y[::-1])
    np.testing.assert_allclose(student.predict(X), teacher.predict(X), rtol=1e-3)


# --- training's own means -------------------------------------------------------------------------------------------
def test_validation_rows_are_taught_too(X, three, rng):
    teacher = LogisticRegression().fit(X, three)
    by = MAP(epochs=4, validation=(rng.normal(size=(7, 2)), three[:7]), patience=2)
    model = Classifier(inference=Distill(teacher, by=by), random_state=0).fit(X, three)
    assert np.isfinite(model.posterior_.info["history"]["validation"]).all()


def test_a_fit_that_was_cut_short_goes_on_to_the_same_bits(X, three, tmp_path):
    def fit(path, stop=None):
        by = MAP(epochs=6, checkpoint=str(tmp_path / path), callbacks=(lambda event: _stopped(event, stop),))
        return Classifier(network=MLP((4,)), inference=Distill(by=by), random_state=0).fit(X, three)

    class _Stop(Exception):
        pass

    def _stopped(event, stop):
        calls.append(event.epoch)
        if len(calls) == stop:
            raise _Stop

    calls = []
    whole = fit("whole.ckpt")
    for stop in (2, 8):  # while the teacher is trained, and the student
        calls = []
        with pytest.raises(_Stop):
            fit(f"{stop}.ckpt", stop)
        calls = []
        np.testing.assert_array_equal(fit(f"{stop}.ckpt").predict_proba(X), whole.predict_proba(X))


def test_a_model_file_holds_the_student_and_not_the_teacher(X, three, tmp_path):
    teacher = LogisticRegression().fit(X, three)
    model = Classifier(inference=Distill(teacher, by=MAP(epochs=2)), random_state=0).fit(X, three)
    model.save(tmp_path / "student.likely")
    loaded = likely.load(tmp_path / "student.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.inference == Distill(by=MAP(epochs=2))
    kept = Distill(Ensemble(2), 3.0)
    assert Spec.from_json(kept.to_json()) == kept
    assert kept.replace(mix=0.1).teacher == Ensemble(2)


# --- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": 0.0}, "temperature must be a positive number"),
        ({"mix": 1.5}, "mix must be a fraction between 0 and 1"),
        ({"teacher": 3}, "teacher must be a fitted model, an inference, or None"),
        ({"teacher": LogisticRegression}, "teacher must be a fitted model"),
        ({"by": 3}, "by must be one of the inference specs"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        Distill(**arguments)


@pytest.mark.parametrize(
    ("teacher", "error", "message"),
    [
        (LinearRegression(), SpecError, "teacher is a LinearRegression without predict_proba"),
        (Told(np.ones((60, 4)) / 4), DataError, r"teacher answers with shape \(60, 4\), .* need \(60, 3\)"),
        (Told(np.ones((60, 2)) / 2, ["a", "z"]), DataError, r"teacher has other classes \(a, z\) than y: .*'z'"),
    ],
)
def test_teachers_that_do_not_fit(teacher, error, message, X, three):
    with pytest.raises(error, match=message):
        Classifier(inference=Distill(teacher, by=MAP(epochs=1))).fit(X, three)


def test_a_teacher_of_other_numbers(X, numbers):
    with pytest.raises(DataError, match=r"teacher answers with shape \(60, 2\)"):
        Regressor(inference=Distill(Told(np.ones((60, 2))), by=MAP(epochs=1))).fit(X, numbers)
