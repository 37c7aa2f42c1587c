"""The grid: small programs with one crashing call each, named ones and systematically composed ones."""
