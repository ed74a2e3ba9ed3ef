"""A saved model gives the same numbers in a process that has never fitted anything."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from likely import Classifier, Regressor
from likely.core.spec import registered
from likely.inference import MAP, Ensemble, Exact, MCDropout
from likely.networks import MLP, Network

SCRIPT = """
import sys, numpy as np, likely
folder = sys.argv[1]
X = np.load(f"{folder}/X.npy")
for name in sys.argv[2:]:
    np.save(f"{folder}/{name}.npy", likely.load(f"{folder}/{name}.likely").predict(X))
"""


def test_loading_in_a_new_process_gives_the_same_predictions(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    quick = MAP(epochs=2)
    tables = {n: c for n, c in registered(Network).items() if "example_inputs" not in vars(c)}
    models = {
        **{f"network-{n}": Regressor(network=c.example(), inference=quick) for n, c in tables.items()},
        "norms": Regressor(network=MLP((4, 4), norm="batch", residual="add", init="orthogonal"), inference=quick),
        "ensemble": Classifier(network=MLP((4,), activation="gelu"), inference=Ensemble(3, by=quick)),
        "dropout": Regressor(network=MLP((4,), dropout=0.2), inference=MCDropout(4, by=quick), random_state=0),
        "bayes": Regressor(inference=Exact("full")),
    }
    np.save(tmp_path / "X.npy", X)
    for name, model in models.items():
        model.fit(X, y > 0 if isinstance(model, Classifier) else y).save(tmp_path / f"{name}.likely")
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), *models], check=True)
    for name, model in models.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), model.predict(X), err_msg=name)
