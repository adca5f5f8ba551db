"""YAML text to plain data with positions, and back."""
