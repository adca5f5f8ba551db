"""(intents, live) → plan. This room reads through ports and cannot send."""
