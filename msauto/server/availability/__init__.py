"""Whether a server can be asked: retries of reads, and the circuit breaker of planning."""
