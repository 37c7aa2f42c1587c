"""Makes code objects."""
