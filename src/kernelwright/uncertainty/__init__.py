"""From outputs to statements about new rows: probabilities, prediction sets, risk bounds, scores."""
