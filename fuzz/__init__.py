"""Long runs: generated programs against every oracle, and rounds of crash and pass in one process."""
