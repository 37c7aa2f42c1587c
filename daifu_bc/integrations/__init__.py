"""What particular libraries need; loaded only if they are."""
