"""Least squares with standard errors: which measurements of 442 patients tell how diabetes will progress?"""

from sklearn.datasets import load_diabetes

from likely import Regressor, plots

data = load_diabetes(as_frame=True, scaled=False)
model = Regressor().fit(data.data, data.target)
table = model.summary(data.data, data.target, errors="HC3")
print(table)

lower, upper = model.predict_interval(data.data, level=0.9)
print(f"{((lower < data.target) & (data.target < upper)).mean():.0%} of the patients are within their 90 % interval")

ax = plots.coefficients(table.terms[:-1], table.estimate[:-1], table.standard_error[:-1])
ax.figure.savefig("standard_errors.png", bbox_inches="tight")
