"""What a fit recorded has one name in every estimator, and a word that says who records it where it is not there."""

import numpy as np
import pytest

from likely import Autoregressive, Classifier, Regressor
from likely.inference import MAP, Exact, Laplace, Newton
from likely.networks import MLP
from likely.priors import Normal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X @ [1.0, -1.0] + 0.3 * RNG.normal(size=60)
LABELS = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        Regressor(network=MLP((4,)), inference=MAP(epochs=3), random_state=0).fit(X, Y),
        Autoregressive(network=MLP((4,)), inference=MAP(epochs=3), random_state=0).fit(X),
    ],
    ids=["Regressor", "Autoregressive"],
)
def test_training_by_epochs_has_an_entry_for_each(model):
    assert {"loss", "lr"} <= set(model.history_)
    assert model.n_iter_ == 3
    assert all(len(values) == 3 for values in model.history_.values())


def test_iterations_of_newtons_method_are_counted():
    model = Classifier(inference=Newton()).fit(X, LABELS)
    assert 1 <= model.n_iter_ <= 100
    assert not hasattr(model, "history_")


def test_evidence_is_where_it_was_integrated():
    exact = Regressor(prior=Normal(1.0), inference=Exact("full")).fit(X, Y)
    approximate = Regressor(prior=Normal(1.0), inference=Laplace(), random_state=0).fit(X, Y)
    assert np.isfinite([exact.log_evidence_, approximate.log_evidence_]).all()


def test_what_was_not_recorded_says_who_records_it():
    model = Regressor()
    for name, who in (("history_", "MAP"), ("n_iter_", "Newton"), ("log_evidence_", "Laplace")):
        with pytest.raises(AttributeError, match=rf"Regressor has {name} once fitted by .*{who}"):
            getattr(model, name)
        assert not hasattr(model.fit(X, Y), name)
