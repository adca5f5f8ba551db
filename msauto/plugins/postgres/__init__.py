"""The ledger that machines share, in PostgreSQL."""
