"""Numbers, times and normal forms of texts that come from outside: each has one reader, with bounds."""
