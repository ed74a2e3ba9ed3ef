"""Any likelihood × network × prior × inference fits: a covering array in the suite, the whole product in `make matrix`.

The values come from the registry and the data from the likelihood itself, so whatever is defined takes part.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import LikelyWarning, TrainingError
from likely.core.spec import registered
from likely.inference.objective import Conditional, able
from likely.likelihoods import Likelihood, Normal
from likely.networks import Network
from likely.priors import Prior

ROWS = 48


def own_network(in_shape, out_features):
    return nn.Sequential(nn.Linear(in_shape[-1], 4), nn.Tanh(), nn.Linear(4, out_features))


def examples(axis):
    return [(name, cls.example()) for name, cls in registered(axis).items()]


AXES = {
    "likelihood": examples(Likelihood),
    "network": [*examples(Network), ("own", own_network)],
    "prior": examples(Prior),
    "inference": [(name, cls.example()) for name, cls in able(Conditional(Normal())).items()],
}


def covering_array(axes):
    """Cells such that every pair of values from two axes meets: greedily, the cell with the most new pairs next."""
    sizes = [len(values) for values in axes.values()]
    cells = np.indices(sizes).reshape(len(sizes), -1)
    missing = {(a, b): np.ones((sizes[a], sizes[b]), int) for a, b in itertools.combinations(range(len(sizes)), 2)}
    chosen = []
    while any(pairs.any() for pairs in missing.values()):
        best = cells[:, sum(pairs[cells[a], cells[b]] for (a, b), pairs in missing.items()).argmax()]
        chosen.append(tuple(best.tolist()))
        for (a, b), pairs in missing.items():
            pairs[best[a], best[b]] = 0
    return chosen


def cells(indices):
    picked = [[values[i] for values, i in zip(AXES.values(), index, strict=True)] for index in indices]
    return [pytest.param(*[value for _, value in p], id="-".join(name for name, _ in p)) for p in picked]


COVERING = covering_array(AXES)


def pytest_generate_tests(metafunc):
    """The whole product only where it is asked for: to list it takes longer than the rest of this file."""
    if metafunc.function is test_every_combination_fits:
        product = itertools.product(*(range(len(values)) for values in AXES.values()))
        asked = metafunc.config.option.markexpr == "matrix"
        metafunc.parametrize(list(AXES), cells(product if asked else itertools.islice(product, 1)))


def tiny_data(likelihood, network):
    """X that the network takes, and y drawn from the likelihood at random η."""
    generator = torch.Generator().manual_seed(0)
    X = (network if isinstance(network, Network) else Network).example_inputs(ROWS, generator)
    target = likelihood.example_target()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        y = likelihood.distribution(0.5 * torch.randn(ROWS, likelihood.size(target))).sample()
    if likelihood.labels:  # each class at least twice
        classes = target.classes or 2
        y[: 2 * classes] = torch.arange(2 * classes).to(y) % classes
    return X, y.double().numpy()


def check_cell(likelihood, network, prior, inference, path, *, twice):
    X, y = tiny_data(likelihood, network)
    kind = Classifier if likelihood.labels else Regressor
    y = y.astype(int) if kind is Classifier else y
    model = kind(likelihood, network, prior, inference, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # few steps, flat priors, no closed form: all said, all expected
        try:
            model.fit(X, y)
        except TrainingError as error:  # an improper posterior is refused, and only where it can be one
            if likelihood.identified or "there is no posterior to draw from" not in str(error):
                raise
            return
        again = clone(model).fit(X, y) if twice else model
    prediction = model.predict(X)
    assert np.isfinite(prediction.astype(float)).all()
    np.testing.assert_array_equal(prediction, again.predict(X))

    log_prob = model.log_prob(X, y)
    assert np.isfinite(log_prob).all()
    by_distribution = model.predict_dist(X).log_prob(torch.as_tensor(y).to(model.posterior_.dtype))
    np.testing.assert_allclose(by_distribution.numpy(), log_prob, rtol=1e-5, atol=1e-6)

    model.save(path)
    code = {"network": network} if network is own_network else {}
    loaded = likely.load(path, **code)
    np.testing.assert_array_equal(loaded.predict(X), prediction)
    np.testing.assert_array_equal(loaded.log_prob(X, y), log_prob)


AXIS_NAMES = ("likelihood", "network", "prior", "inference")


@pytest.mark.parametrize(AXIS_NAMES, cells(COVERING[::6]))
def test_every_sixth_cell_of_the_array_fits_twice_to_the_same_bits(likelihood, network, prior, inference, tmp_path):
    check_cell(likelihood, network, prior, inference, tmp_path / "model.likely", twice=True)


@pytest.mark.parametrize(AXIS_NAMES, cells([cell for i, cell in enumerate(COVERING) if i % 6]))
def test_every_other_cell_of_the_array_fits(likelihood, network, prior, inference, tmp_path):
    check_cell(likelihood, network, prior, inference, tmp_path / "model.likely", twice=False)


@pytest.mark.matrix
def test_every_combination_fits(likelihood, network, prior, inference, tmp_path):
    check_cell(likelihood, network, prior, inference, tmp_path / "model.likely", twice=True)


def test_the_array_covers_every_pair():
    for (a, left), (b, right) in itertools.combinations(enumerate(AXES.values()), 2):
        met = {(cell[a], cell[b]) for cell in COVERING}
        assert met == set(itertools.product(range(len(left)), range(len(right))))
