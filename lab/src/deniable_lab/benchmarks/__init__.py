"""Speed, measured next to something else in the same run: absolute times differ between machines, ratios much less."""
