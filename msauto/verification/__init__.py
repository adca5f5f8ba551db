"""What a request must show when its target is read again, and what the ledger keeps of it."""
