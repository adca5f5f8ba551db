"""(intents, live) → plan. This package reads through ports and cannot send."""
