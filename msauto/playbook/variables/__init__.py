"""Variables: levels, precedence, and the report of what wins."""
