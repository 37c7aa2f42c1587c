"""The tests; helpers of several test modules are imported as `tests.helpers...`."""
