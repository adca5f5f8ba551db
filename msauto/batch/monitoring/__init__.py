"""Messages about a batch to other systems. None of them changes what a batch does, or its exit code."""
