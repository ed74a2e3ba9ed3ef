"""What all of Likely stands on: specs, estimators, validation, errors, seeds, progress, model files."""
