"""Under `torchrun`, processes that share the rows fit what one process fits."""

from __future__ import annotations

import numpy as np

SCRIPT = """
import numpy as np
from likely import VAE, Autoregressive, Flow
from likely.inference import MAP
from likely.networks import MLP

rng = np.random.default_rng(0)
X = rng.normal(size=(65, 1)) * [1.0, -0.5, 2.0] + 0.3 * rng.normal(size=(65, 3))
tiny = {"inference": MAP("adam(1e-2)", epochs=40, batch_size=33), "random_state": 0}
models = {
    "flow": Flow("affine", layers=2, network=MLP((8,)), **tiny),
    "chain": Autoregressive(network=MLP((8,)), **tiny),
    "vae": VAE(latent=1, encoder=MLP((8,)), decoder=MLP((8,)), **tiny),
}
answers = {name: model.fit(X).log_prob(X) for name, model in models.items()}
"""


def test_two_processes_fit_what_one_fits(by_processes):
    """The same gradients are summed in another order; a VAE draws other codes in each process, so it is only near."""
    alone, first, second = by_processes(SCRIPT)
    for name in alone:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    for name in ("flow", "chain"):
        np.testing.assert_allclose(first[name], alone[name], rtol=1e-3, atol=1e-3, err_msg=name)
    assert abs(first["vae"].mean() - alone["vae"].mean()) < 0.5
