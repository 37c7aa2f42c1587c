"""Programs as trees of statements, and a walker that runs them: what is expected where a run goes on in another text."""
