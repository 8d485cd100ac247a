"""Uncertainty of predictions: probabilities, prediction sets, risk bounds, scores."""
