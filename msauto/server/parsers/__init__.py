"""The shapes of answers, one module each: elements to live values (interface, «Resources and their fields»)."""
