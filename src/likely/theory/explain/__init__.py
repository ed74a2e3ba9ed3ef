"""Why did the model say that? What each input adds to an answer, for one row at a time.

saliency               ∂f/∂x: where a small change would matter
integrated_gradients   gradients along the way from a baseline, which sum to f(x) − f(baseline)
smooth_grad            gradients averaged over rows with noise
grad_cam               where the last convolution of an image network sees a class
occlusion              what is lost where a window is covered
attention_rollout      which steps or patches attention has carried to the answer
shapley                the fair share of each column of a table: exact for few columns, sampled for many

f is the log-odds or the probability of a class, or the mean of a number, averaged over the posterior. Each gives an
`Attribution`, which `likely.plots.attribution` draws.
"""

from __future__ import annotations

from .attribution import Attribution
from .grad_cam import grad_cam
from .gradients import integrated_gradients, saliency, smooth_grad
from .occlusion import occlusion
from .rollout import attention_rollout
from .shapley import shapley

__all__ = [
    "Attribution",
    "attention_rollout",
    "grad_cam",
    "integrated_gradients",
    "occlusion",
    "saliency",
    "shapley",
    "smooth_grad",
]
