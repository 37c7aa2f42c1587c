"""Training and testing."""
