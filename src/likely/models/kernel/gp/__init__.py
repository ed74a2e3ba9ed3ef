"""The parts of Gaussian processes: covariances of data, evidence, posteriors by Laplace, inducing points."""
