"""Numbers on real data that the shared folder beside the checkout holds."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from likely import Classifier, Regressor
from likely.inference import MAP, Ensemble
from likely.networks import MLP
from likely.optim import Adam


def test_a_network_reads_handwritten_digits(shared_data):
    """A dense network of 256 units on 5,000 digits; softmax regression is right on 87 % of these rows."""
    data = np.load(shared_data / "mnist.npz", allow_pickle=False)
    rows = [(data[name][:5000].reshape(-1, 784) / 255).astype(np.float32) for name in ("x_train", "x_test")]
    model = Classifier(network=MLP((256,)), inference=MAP(Adam(2e-3), epochs=12), random_state=0)
    assert model.fit(rows[0], data["y_train"][:5000]).score(rows[1], data["y_test"][:5000]) > 0.91


def test_an_ensemble_beats_least_squares_on_heating_load(shared_data):
    """On the first published split of the energy data, in RMSE and in mean log-probability of held-out buildings."""
    data = np.load(shared_data / "uci_regression.npz", allow_pickle=False)
    train, test = data["energy_train_idx"][0], data["energy_test_idx"][0]
    scaler = StandardScaler().fit(data["energy_x"][train])
    x, y = scaler.transform(data["energy_x"]), data["energy_y"]
    inference = Ensemble(5, by=MAP(Adam(0.01), epochs=100, batch_size=64))
    ensemble = Regressor(network=MLP((50,)), inference=inference, random_state=0).fit(x[train], y[train])
    line = Regressor().fit(x[train], y[train])
    rmse = [np.sqrt(np.mean((model.predict(x[test]) - y[test]) ** 2)) for model in (ensemble, line)]
    score = [model.log_prob(x[test], y[test]).mean() for model in (ensemble, line)]
    assert rmse[0] < 0.5 * rmse[1]
    assert score[0] > score[1] + 0.5
