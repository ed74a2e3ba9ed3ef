"""Counts: visits to a doctor of 20,190 people, by the likelihood that fits them best."""

import statsmodels.datasets

from likely import Regressor, evaluate, plots
from likely.likelihoods import NegativeBinomial, Normal, Poisson

data = statsmodels.datasets.randhie.load_pandas().data.sample(3000, random_state=0)
X, y = data.drop(columns="mdvis"), data["mdvis"]

likelihoods = {"normal": Normal(), "Poisson": Poisson(), "negative binomial": NegativeBinomial()}
models = {name: Regressor(likelihood) for name, likelihood in likelihoods.items()}
board = evaluate.compare(models, X, y, cv=5)
print(board)

model = models["negative binomial"].fit(X, y)
print(model.summary())
lower, upper = model.predict_interval(X[:3], level=0.9)
print("visits of the first three, with 90 % probability:")
for low, high in zip(lower, upper, strict=True):
    print(f"  {low:.0f} to {high:.0f}")

plots.leaderboard(board).figure.savefig("counts.png", bbox_inches="tight")
