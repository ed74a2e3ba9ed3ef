"""Likely: deep statistical learning. One way of working from least squares to diffusion models.

    p(y | x) = likelihood( network(x; θ) ),   θ ~ prior,   θ found by inference

>>> from likely import Regressor
>>> Regressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
array([7.])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.version import __version__

if TYPE_CHECKING:
    import os

    from .core.estimator import Estimator
    from .data.formula import Formula
    from .models import (
        GAN,
        PCA,
        VAE,
        Autoencoder,
        Autoregressive,
        BayesianNetwork,
        Classifier,
        Detector,
        Diffusion,
        EnergyModel,
        FactorAnalysis,
        Flow,
        Forecaster,
        FrameModel,
        GaussianMixture,
        GaussianProcess,
        HiddenMarkov,
        Hopfield,
        KalmanFilter,
        KernelRidge,
        KMeans,
        LanguageModel,
        LatentDirichlet,
        MaskedLanguageModel,
        Mixture,
        NaiveBayes,
        Perceptron,
        Regressor,
        ScoreModel,
        Seq2Seq,
        SupportVector,
        TableModel,
        WordVectors,
    )

__all__ = [
    "GAN",
    "PCA",
    "VAE",
    "Autoencoder",
    "Autoregressive",
    "BayesianNetwork",
    "Classifier",
    "Detector",
    "Diffusion",
    "EnergyModel",
    "FactorAnalysis",
    "Flow",
    "Forecaster",
    "FrameModel",
    "GaussianMixture",
    "GaussianProcess",
    "HiddenMarkov",
    "Hopfield",
    "KMeans",
    "KalmanFilter",
    "KernelRidge",
    "LanguageModel",
    "LatentDirichlet",
    "MaskedLanguageModel",
    "Mixture",
    "NaiveBayes",
    "Perceptron",
    "Regressor",
    "ScoreModel",
    "Seq2Seq",
    "SupportVector",
    "TableModel",
    "WordVectors",
    "__version__",
    "formula",
    "load",
]

_ROOMS = (
    *("core", "data", "decoding", "evaluate", "inference", "kernels", "likelihoods", "models", "networks", "optim"),
    *("plots", "priors", "probability", "robust", "sampling", "theory"),
)


def load(path: str | os.PathLike[str], **code: Any) -> Estimator:
    """The model that `save` wrote. Loading runs no code; a damaged or foreign file is refused.

    A model whose network is your own `nn.Module` needs it again: `likely.load(path, network=module)`.

    >>> import tempfile
    >>> from likely import Regressor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Regressor().fit([[0.0], [1.0]], [1.0, 3.0]).save(f"{folder}/line.likely")
    ...     load(f"{folder}/line.likely").predict([[2.0]]).round(6)
    array([5.])
    """
    from . import models
    from .core.estimator import load_estimator

    return load_estimator(path, find=models.find, **code)


def formula(formula: str, frame: Any) -> Formula:
    """Columns and target of a frame by a formula in the notation of R; see `likely.data.Formula`.

    It needs the library formulaic: `pip install 'likely[formula]'`. Splines (`bs`, `cr`), categories (`C`),
    interactions (`a:b`, `a*b`), powers, `poly`, `np.log(x)`, `center` and `scale` are its own.

    Parameters
    ----------
    formula : "target ~ terms". Without a target there are columns alone. A dot is all other columns, `- 1` leaves out
        the intercept; an offset is not a term, but given to `fit` and `predict`.
    frame : a pandas or polars frame, or a dict of columns. Rows with a missing value are left out, with a warning.

    Returns
    -------
    A `Formula`, which `fit`, `score`, `log_prob` and `summary` of `Regressor` and `Classifier` take for X and y.

    See also
    --------
    TableModel : encodes all columns of a frame, dates and gaps among them, without a formula.

    >>> from likely import Regressor
    >>> rows = {"price": [1.0, 3.0, 2.0, 4.0], "area": [0.0, 1.0, 0.0, 1.0], "city": ["a", "a", "b", "b"]}
    >>> design = formula("price ~ area + C(city)", rows)
    >>> Regressor().fit(design).summary().terms
    ('area', 'C(city)[T.b]', 'intercept')
    """
    from .data.formula import Formula

    return Formula(formula, frame)


def __getattr__(name: str) -> Any:
    """Rooms and models open on first use, so that importing one does not import all."""
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in __all__:
        return getattr(importlib.import_module(".models", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
