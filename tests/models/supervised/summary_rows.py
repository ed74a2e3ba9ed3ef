"""Rows of a line, of labels, counts and classes, for tests of summaries, and agreement with a peer's summary."""

import numpy as np

RNG = np.random.default_rng(7)
X = RNG.normal(size=(200, 3)) * [1.0, 10.0, 0.1]
WITH_ONE = np.column_stack([X, np.ones(len(X))])
LINE = X @ [1.0, 0.1, 3.0]
Y = LINE + RNG.normal(size=200) * np.exp(0.3 * X[:, 0]) + 2
LABELS = (RNG.random(200) < 1 / (1 + np.exp(-LINE))).astype(int)
COUNTS = RNG.negative_binomial(2, 2 / (2 + np.exp(0.4 * X[:, 0] + 0.5)))
THREE = (RNG.gumbel(size=(200, 3)) + np.column_stack([0 * LINE, LINE, -LINE])).argmax(1)
GROUPS = RNG.integers(0, 15, 200)


def assert_same(summary, peer, rtol=1e-6):
    np.testing.assert_allclose(summary.estimate, np.asarray(peer.params).ravel(order="F"), rtol=rtol, atol=1e-8)
    np.testing.assert_allclose(summary.standard_error, np.asarray(peer.bse).ravel(order="F"), rtol=rtol)
    np.testing.assert_allclose(summary.p_value, np.asarray(peer.pvalues).ravel(order="F"), rtol=1e-4, atol=1e-12)
    told = [summary.facts[name] for name in ("log_likelihood", "aic", "bic")]
    np.testing.assert_allclose(told, [peer.llf, peer.aic, peer.bic], rtol=1e-8)
