"""Plays and tasks to intents."""
