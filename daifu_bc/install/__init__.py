"""Which code is vaccinated, and how it gets there."""
