"""Programs that crash, their repair, and what the repair is to be equal to."""
