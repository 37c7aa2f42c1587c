"""How a person or a tool talks to a hold."""
