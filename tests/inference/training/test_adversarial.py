"""Adversarial training: the worst rows of a ball are met in every form, by members, and after a break."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec
from likely.inference import HMC, MAP, AdversarialTraining, Checkpoint, Ensemble, MCDropout
from likely.networks import LSTM, MLP, Transformer
from likely.optim import LBFGS, SGD, Adam
from likely.robust import FGSM, PGD, DeepFool, attack

FORMS = ("pgd", "single", "free")


@pytest.fixture(scope="module")
def stripes():
    """Two columns tell the classes apart by a hair, a third one by more, in nine of ten rows: out of reach."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    sign = 2.0 * y - 1
    X = np.column_stack([0.15 * sign, 0.15 * sign, sign]) + 0.02 * rng.normal(size=(120, 3))
    X[::10, 2] = 0
    return X, y


NETWORK = MLP((16,))


def model_of(inference, network=NETWORK):
    return Classifier(network=network, inference=inference, random_state=0, standardise=False)


@pytest.mark.parametrize("form", FORMS)
def test_robust_accuracy_rises(stripes, form):
    """Six columns that tell by a hair are what a network takes to that is not attacked: nearly all rows fall then."""
    X, y = stripes[0][:, [0, 1, 0, 1, 0, 1, 2]], stripes[1]
    by = MAP(Adam(0.02), epochs=40, batch_size=40)
    plain = model_of(by).fit(X, y)
    robust = model_of(AdversarialTraining(by, PGD(0.4, steps=5), form=form)).fit(X, y)
    judge = PGD(0.4, steps=10, restarts=2)
    before, after = (1 - attack(model, X, y, judge, random_state=0).rate for model in (plain, robust))
    assert after > before + 0.2
    assert after > 0.8


def test_a_linear_model_pays_the_dual_norm_of_its_weights(stripes):
    """The worst row of a linear model has margin y·wᵀx − r‖w‖₁: training meets log(1 + exp(−that)) exactly."""
    X, y = stripes
    weight = torch.tensor([0.5, -0.3, 0.2], dtype=torch.float64, requires_grad=True)

    def network(in_shape, out_features):
        layer = torch.nn.Linear(3, 1, bias=False)
        layer.weight.data.copy_(weight.detach())
        return torch.nn.Sequential(layer)

    model = model_of(AdversarialTraining(MAP(SGD(0.5), epochs=1, batch_size=None), FGSM(0.3)), network).fit(X, y)
    margin = torch.from_numpy(2.0 * y - 1) * (torch.from_numpy(X) @ weight) - 0.3 * weight.abs().sum()
    (gradient,) = torch.autograd.grad(torch.nn.functional.softplus(-margin).mean(), weight)
    trained = model.posterior_.parameters["network.0.weight"].ravel().double()
    torch.testing.assert_close(trained, (weight - 0.5 * gradient).detach(), rtol=1e-4, atol=1e-6)


def seen_by(inference, X, y):
    """The rows, and what a network that records its inputs sees of them in training."""
    seen = []

    class Recording(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x):
            if self.training:
                seen.append(x.detach().clone())
            return self.layer(x)

    model_of(inference, lambda in_shape, out: Recording()).fit(X, y)
    rows = torch.from_numpy(X).float()
    return rows, [x for x in seen if x.shape == rows.shape]


@pytest.mark.parametrize("form", FORMS)
def test_training_stays_in_the_ball_and_the_range(stripes, form):
    """None is further than the radius from a row, and none out of bounds."""
    X = np.clip(stripes[0], -1, 1)
    inference = AdversarialTraining(MAP(epochs=2, batch_size=None), PGD(0.1, 2, steps=3), form=form, bounds=(-1.0, 1.0))
    rows, met = seen_by(inference, X, stripes[1])
    assert met
    for x in met:
        assert float(x.abs().max()) <= 1
        assert float(torch.cdist(x, rows).amin(1).max()) <= 0.1 * (1 + 1e-4)
    assert any(float((x - rows).abs().max()) > 0.01 for x in met)


def test_bounds_may_differ_from_column_to_column(stripes):
    """Arrays become tuples, so that the spec still compares, hashes and goes to a file; each column keeps its ends."""
    X, y = stripes
    low, high = X.min(0), X.max(0)
    inference = AdversarialTraining(MAP(epochs=2, batch_size=None), FGSM(0.2), bounds=(low, high), warmup=0.0)
    assert inference == Spec.from_json(inference.to_json())
    assert hash(inference) == hash(inference.replace(bounds=(low.copy(), torch.from_numpy(high))))
    rows, met = seen_by(inference, X, y)
    for x in met:
        assert bool((x >= torch.from_numpy(low).float()).all() and (x <= torch.from_numpy(high).float()).all())
    assert any(float((x - rows).abs().max()) > 0.1 for x in met)


def test_rows_beyond_the_bounds_are_refused(stripes):
    """Clipped in silence, they would be other rows than those of the user."""
    X, y = stripes
    with pytest.raises(DataError, match=r"beyond bounds=\(0, 1\): row \d+ has"):
        model_of(AdversarialTraining(MAP(epochs=1), PGD(0.03), bounds=(0, 1))).fit(255 * X, y)
    one_sided = AdversarialTraining(MAP(epochs=1), PGD(0.03), bounds=(None, 2.0))
    assert model_of(one_sided).fit(X, y).score(X, y) >= 0


@pytest.mark.parametrize(("warmup", "reached"), [(0.0, [1, 1, 1, 1, 1]), (0.8, [0.25, 0.5, 0.75, 1, 1])])
def test_the_radius_grows_over_the_first_steps(stripes, warmup, reached):
    inference = AdversarialTraining(MAP(epochs=5, batch_size=None), FGSM(0.2), warmup=warmup)
    rows, met = seen_by(inference, stripes[0], stripes[1])
    changes = [float((x - rows).abs().max()) for x in met[-5:]]
    np.testing.assert_allclose(changes, 0.2 * np.array(reached), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_a_broken_run_resumes_to_the_same_bits(stripes, form, tmp_path):
    X, y = stripes
    attacked = {"attack": PGD(0.3, steps=2), "form": form, "replays": 3}

    def fit(steps, path=None, **more):
        by = MAP(Adam(0.02), steps=8, batch_size=50, checkpoint=path, **more)
        return model_of(AdversarialTraining(by, **attacked)).fit(X, y)

    whole = fit(8)
    path = Checkpoint(str(tmp_path / "run.ckpt"), seconds=0)

    class Killed(Exception):
        pass

    def kill(epoch):
        if epoch.step >= 4:
            raise Killed

    with pytest.raises(Killed):
        fit(8, path, callbacks=(kill,))
    resumed = fit(8, path)
    for name, value in whole.posterior_.parameters.items():
        assert torch.equal(value, resumed.posterior_.parameters[name])


@pytest.mark.parametrize("form", FORMS)
def test_members_of_an_ensemble_are_attacked_each_by_itself(stripes, form):
    X, y = stripes
    by = Ensemble(2, by=MAP(Adam(0.02), epochs=30, batch_size=40))
    inference = AdversarialTraining(by, PGD(0.4, steps=4), form=form)
    model = model_of(inference).fit(X, y)
    assert len(model.posterior_) == 2
    assert 1 - attack(model, X, y, PGD(0.4, steps=10)).rate > 0.8
    other_way = Ensemble(2, by=AdversarialTraining(by.by, PGD(0.4, steps=4), form=form))
    for name, value in model_of(other_way).fit(X, y).posterior_.parameters.items():
        torch.testing.assert_close(value, model.posterior_.parameters[name])


def test_sequences_dropout_and_numbers(rng):
    sequences = [rng.normal(size=(length, 2)) for length in rng.integers(1, 5, size=20)]
    y = np.array([part.sum() > 0 for part in sequences])
    inference = AdversarialTraining(MAP(epochs=2), PGD(0.1, norm=2, steps=2))
    assert Classifier(network=LSTM(4), inference=inference, random_state=0).fit(sequences, y).score(sequences, y) >= 0
    X = rng.normal(size=(30, 2))
    inference = AdversarialTraining(MCDropout(3, by=MAP(epochs=2)), FGSM(0.1, norm=3))
    model = Regressor(network=MLP((8,), dropout=0.2), inference=inference, random_state=0).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all()


def test_bad_input_is_refused_in_words(rng, stripes):
    X, y = stripes
    with pytest.raises(SpecError, match="by must be MAP, or another inference by MAP, such as Ensemble"):
        AdversarialTraining(HMC())
    with pytest.raises(SpecError, match="attack must be FGSM or PGD, which stay within a radius"):
        AdversarialTraining(attack=DeepFool())
    with pytest.raises(SpecError, match='form must be "pgd", "free" or "single"'):
        AdversarialTraining(form="fast")
    with pytest.raises(SpecError, match="attack must be of norm inf, 2 or 1 where form='single'"):
        AdversarialTraining(attack=FGSM(0.1, norm=3), form="single")
    for bounds in ((1.0, 0.0), (0.0, 1.0, 2.0), 3, "ab", (np.zeros(3), np.zeros(3))):
        with pytest.raises(SpecError, match=r"bounds"):
            AdversarialTraining(bounds=bounds)
    with pytest.raises(SpecError, match="warmup must be a fraction of the steps"):
        AdversarialTraining(warmup=2.0)
    with pytest.raises(DataError, match="radius=300 is beyond the range of X"):
        model_of(AdversarialTraining(MAP(epochs=1), PGD(300.0))).fit(X, y)
    with pytest.raises(SpecError, match="moves θ and the rows by one gradient"):
        model_of(AdversarialTraining(MAP(LBFGS(), epochs=1), PGD(0.1), form="free")).fit(X, y)
    tokens = rng.integers(5, size=(12, 4))
    network = Transformer(width=8, heads=2, layers=1, tokens=5)
    with pytest.raises(DataError, match="X has tokens"):
        model_of(AdversarialTraining(MAP(epochs=1)), network).fit(tokens, tokens[:, 0] > 2)
    sequences = [rng.normal(size=(length, 2)) for length in (1, 2, 3, 2)]
    free = Classifier(network=LSTM(4), inference=AdversarialTraining(MAP(epochs=1), form="free"))
    with pytest.raises(DataError, match='form="free" takes rows of one shape'):
        free.fit(sequences, [0, 1, 0, 1])
