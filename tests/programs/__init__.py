"""Test programs: what they can call, how one is run, and the process that runs them."""
