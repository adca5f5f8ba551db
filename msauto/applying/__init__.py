"""A plan becomes results: each request is journalled, sent once, settled by reading, and its target proved."""
