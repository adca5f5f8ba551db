"""What every aspect plans with: the plan builder, its context, the order of requests, comparison, positions."""
