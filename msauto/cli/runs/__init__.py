"""What the commands that plan and apply share, from the options to the exit code."""
