"""EM: maximum likelihood where some variables are hidden.

    log p(x | θ) = ELBO(q, θ) + KL(q ‖ p(z | x, θ)),      ELBO(q, θ) = E_q[log p(x, z | θ)] + H(q)

The E-step sets q = p(z | x, θ), so that KL = 0; the M-step raises the ELBO in θ. So log p(x | θ) never falls.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import ConvergenceWarning, TrainingError
from ...core.progress import progress
from ...core.random import spread
from ...core.spec import require
from ...core.threads import threads_for
from ..posterior import Posterior
from ..problem import Inference, Problem
from .density import HiddenDensity, LatentDensity
from .latent import Latent, Params

__all__ = ["EM", "elbo"]


ROUNDING = 1e-15
"""Of a log-likelihood: a rise by less cannot be told from the order in which rows were added up."""


class EM(Inference):
    """EM(max_iter=100, tol=1e-5, starts=1): stop when one step raises the log-likelihood by less than `tol` per row.

    `starts` different first guesses run side by side and the best one is kept. With `tol=0` all `max_iter` steps are
    taken: the log-likelihood never falls but by rounding, which would be another end on every machine.

    >>> from likely import GaussianMixture
    >>> model = GaussianMixture(n_components=2, inference=EM(max_iter=200), random_state=0)
    >>> sorted(model.fit([[0.0], [0.2], [5.0], [5.2]]).means_.round(2).ravel().tolist())
    [0.1, 5.1]
    """

    dtype = torch.float64
    needs = frozenset({"expectations"})

    max_iter: int = 100
    tol: float = 1e-5
    starts: int = 1

    @classmethod
    def example(cls) -> EM:
        """A few steps."""
        return cls(max_iter=5)

    def validate(self) -> None:
        require(self.max_iter >= 1, self, "max_iter", "an integer above 0")
        require(self.tol >= 0, self, "tol", "0 or a positive number")
        require(self.starts >= 1, self, "starts", "an integer above 0")

    def fit(self, problem: Problem) -> Posterior:
        """The best parameters of all starts; `info["em"]` has the trace, the last values and whether it converged."""
        assert isinstance(problem.objective, HiddenDensity)
        model, title, verbose = problem.objective.latent, problem.title, problem.verbose
        trace: list[Tensor] = []
        converged = False
        with threads_for(model.work), progress(title, self.max_iter, show=verbose) as report:
            params = model.start(spread(distributed.agreed(problem.seed), self.starts))
            for step in range(self.max_iter + 1):
                statistics, value = _expected(model, params)
                trace.append(value)
                report(step, log_likelihood=float(value.max()))
                converged = step > 0 and self.tol > 0 and settled(value, trace[-2], self.tol * model.count)
                if converged or step == self.max_iter:
                    break
                params = model.maximise(params, statistics)
        if not converged and self.tol > 0:
            warnings.warn(
                f"{title} was still rising after max_iter={self.max_iter} steps of EM (the last by "
                f"{float((trace[-1] - trace[-2]).max()) / model.count:.2g} per row); raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        best = best_start(trace[-1])
        chosen = {name: value[best : best + 1] for name, value in params.items()}
        kept = {"trace": torch.stack(trace)[:, best], "finals": trace[-1], "converged": converged}
        return Posterior(LatentDensity(model), chosen, {}, info={"em": kept})


def settled(value: Tensor, before: Tensor, least: float) -> bool:
    """Whether no start has risen by `least`, or by what rounding alone can make of a sum.

    >>> one, two = torch.tensor([-100.0, -7.0]).double(), torch.tensor([-99.9, -7.0]).double()
    >>> settled(two, one, least=0.01), settled(two, one, least=0.2)
    (False, True)
    """
    return bool((value - before < (ROUNDING * value.abs()).clamp_min(least)).all())


def best_start(finals: Tensor) -> int:
    """The start with the highest value; of those that differ by rounding alone, the first.

    >>> best_start(torch.tensor([-120.0, -100.00000000000001, -100.0], dtype=torch.float64))
    1
    """
    values = finals.nan_to_num(nan=-torch.inf)
    top = values.max()
    return int((values >= top - 1e-11 * top.abs().clamp_max(1e300)).nonzero()[0])


def elbo(log_joint: Tensor, q: Tensor) -> Tensor:
    """E_q[log p(x, z)] − E_q[log q(z)] of each row, for finite z: both arguments are (…, z).

    >>> joint = torch.tensor([0.3, 0.1]).log()                    # p(x, z) for the two values of z
    >>> elbo(joint, torch.tensor([0.75, 0.25])).exp()             # q is the posterior: the ELBO is log p(x)
    tensor(0.4000)
    >>> bool(elbo(joint, torch.tensor([0.5, 0.5])) < torch.tensor(0.4).log())
    True
    """
    return torch.where(q > 0, q * (log_joint - q.log()), 0.0).sum(-1)


def _expected(model: Latent, params: Params) -> tuple[Params, Tensor]:
    """The E-step over all processes: their sums, added up, and the value that EM raises."""
    statistics, log_likelihood = model.expect(params)
    distributed.sum_(*statistics.values(), log_likelihood)
    value = log_likelihood + model.log_prior(params)
    if bool(torch.isnan(value).all()) or bool((value == torch.inf).any()):
        raise TrainingError(
            f"EM came to a log-likelihood of {float(value[0])}: a component has shrunk to a point, or the data are too "
            "large for float64; rescale the data, or raise the floor of the model."
        )
    return statistics, value
