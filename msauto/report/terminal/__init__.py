"""Plans, results and problems as text for a terminal, and the progress of a run."""
