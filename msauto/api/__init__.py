"""The composition root: what ``plan``, ``apply`` and ``undo`` are, from inputs to result.

It decides on settings, limits, freezes, the ledger, locks and the record of each attempt, and neither prints nor exits.
"""
