"""Plain frozen values that every package shares; standard library only."""
