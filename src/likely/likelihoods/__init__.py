"""The distribution of a target given a network's output: p(y | η).

    numbers     Normal, StudentT, Laplace,         positive    Gamma, Exponential,      between 0 and 1    Beta
                NormalMixture                                  LogNormal
    labels      Bernoulli, Categorical, Ordinal    counts      Poisson, NegativeBinomial, ZeroInflated, Binomial
    sequences   Chain, of labels
    vectors     MultivariateNormal                 several of mixed kinds               Product

>>> Likelihood.parse("student_t(df=3.0)")
StudentT(df=3.0)
"""

from __future__ import annotations

from ..core.room import open_room
from .base import Likelihood, Target
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .chain import Chain
from .exponential import Exponential
from .gamma import Gamma
from .laplace import Laplace
from .multivariate_normal import MultivariateNormal
from .negative_binomial import NegativeBinomial
from .normal import Normal
from .normal_mixture import NormalMixture
from .ordinal import Ordinal
from .poisson import Poisson
from .product import Product
from .student_t import StudentT

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Chain",
    "Exponential",
    "Gamma",
    "Laplace",
    "Likelihood",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "NormalMixture",
    "Ordinal",
    "Poisson",
    "Product",
    "StudentT",
    "Target",
]

open_room(__name__, Likelihood)
