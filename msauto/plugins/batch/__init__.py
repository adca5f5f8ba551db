"""Scheduled batch runs: the jobs of a ``batch.yml``, when they are due, and what starts them."""
