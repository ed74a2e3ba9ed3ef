"""The level of the Nile, 1871 to 1970: a Kalman filter with gaps, a forecast, and when the level fell."""

import numpy as np
import statsmodels.datasets

from likely import HiddenMarkov, KalmanFilter, plots
from likely.likelihoods import Normal

flow = statsmodels.datasets.nile.load_pandas().data["volume"].to_numpy(dtype=float)
gaps = flow.copy()
gaps[20:30] = np.nan  # ten years without a measurement

level = KalmanFilter.local_level().fit(gaps)
ahead = level.forecast(gaps, steps=10)
low, middle, high = (part.item() for part in (ahead.lower[0], ahead.mean[0], ahead.upper[0]))
print(
    f"log p of the series {level.score(gaps):.1f}; next year {middle:.0f}, between {low:.0f} and {high:.0f} in 9 of 10"
)

two = HiddenMarkov(Normal(), n_states=2, random_state=0).fit(flow)
states = two.decode(flow)
print(f"the level changed after {1871 + int((states != states[0]).argmax()) - 1}")

ax = plots.forecast(level, gaps, steps=10, times=np.arange(1871, 1981), label="flow", x_label="year")
ax.figure.savefig("level.png", bbox_inches="tight")
