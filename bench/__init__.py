"""Benchmarks (`make bench`). They print ratios to a baseline that is measured in the same run."""
