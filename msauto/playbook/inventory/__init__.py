"""Inventories: hosts, groups, patterns, and the servers that they describe."""
