"""Linear models with Gaussian noise and hidden Gaussian variables."""
