"""A mixed table with gaps: learn the distribution of whole rows, fill what is missing, draw new rows."""

import numpy as np
import statsmodels.datasets

from likely import Autoregressive

people = statsmodels.datasets.fair.load_pandas().data.sample(1000, random_state=0).reset_index(drop=True)
people = people[["age", "yrs_married", "children", "religious", "educ", "occupation"]]
people["occupation"] = people["occupation"].map(
    {1: "student", 2: "farming", 3: "clerical", 4: "teaching", 5: "managerial", 6: "professional"}
)
rng = np.random.default_rng(0)
holes = people.mask(rng.random(people.shape) < 0.2)

model = Autoregressive(random_state=0).fit(holes)
filled = model.impute(holes)
gone = holes["yrs_married"].isna()
error = np.sqrt(((filled["yrs_married"] - people["yrs_married"])[gone] ** 2).mean())
guess = people["yrs_married"][gone].std()
print(f"years of marriage filled with an error of {error:.1f}; by their mean it would be {guess:.1f}")
print(model.sample(5, {"occupation": "teaching"}, random_state=0))
