"""A crash, from the barrier to the resume."""
