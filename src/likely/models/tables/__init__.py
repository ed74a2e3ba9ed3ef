"""Estimators that take data frames: their columns encoded, any model inside."""
