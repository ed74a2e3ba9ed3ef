"""A Gaussian process for the carbon dioxide over Mauna Loa: trend, seasons, and months that were not measured."""

import numpy as np
import statsmodels.datasets

from likely import GaussianProcess, plots
from likely.kernels import RBF, Periodic

series = statsmodels.datasets.co2.load_pandas().data["co2"]["1975":].resample("MS").mean().dropna()
year, level = series.index.year + (series.index.month - 1) / 12, series.to_numpy()
X, seen = np.asarray(year)[:, None], np.random.default_rng(0).random(len(level)) < 0.7

kernel = 1000.0 * RBF(50.0) + 10.0 * Periodic(1.0, period=1.0) + 1.0 * RBF(2.0)
model = GaussianProcess(kernel, random_state=0, starts=1).fit(X[seen], level[seen])
print(model.kernel_)
lower, upper = model.predict_interval(X[~seen], level=0.9)
inside = (lower < level[~seen]) & (level[~seen] < upper)
print(f"{inside.mean():.0%} of {len(inside)} months that it has not seen are inside their 90 % interval")

ax = plots.process(model, X[seen], level[seen], x_label="year", label="CO₂ in ppm")
ax.figure.savefig("gaussian_process.png", bbox_inches="tight")
