"""The state of the simulator, its seeds, and the file that keeps it."""
