"""Forecasting sunspots with intervals, and judging it on the past."""

import statsmodels.datasets

from likely import Forecaster, plots
from likely.models.forecasting import Naive

spots = statsmodels.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
model = Forecaster(lags=11, random_state=0).fit(spots)
lower, upper = model.predict_interval(11, level=0.8)
print("the next eleven years:", model.predict(11).round().astype(int).tolist())
print("80 % intervals:", list(zip(lower.round().astype(int).tolist(), upper.round().astype(int).tolist(), strict=True)))

for name, own in {"autoregression": model, "naive": Forecaster(network=Naive()).fit(spots)}.items():
    past = own.backtest(origins=4, steps=11)
    print(f"{name}: quantile loss {past.weighted_quantile_loss:.3f}, mean absolute error {past.mae:.1f}")

plots.future(model, 22, past=110, label="sunspots").figure.savefig("forecast.png", bbox_inches="tight")
