"""From a run in the ledger to the intents that take it back."""
