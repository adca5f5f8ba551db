"""Apply a plan: each request is journalled, sent once and settled, and its target is verified."""
