"""Read one server, evaluate the intents, compare, and make the targets of the plan."""
