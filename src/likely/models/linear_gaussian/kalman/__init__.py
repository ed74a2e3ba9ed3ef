"""The parts of Kalman filters: matrices and their structures, first guesses, EM, forecasts."""
