"""What ``plan``, ``apply`` and ``undo`` share, from the options to the exit code."""
