"""Plain frozen values that every room shares; standard library only."""
