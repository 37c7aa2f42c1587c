"""Test suites of others, run vaccinated and compared with a plain run, test by test."""
