"""Plans as JSON files: write them, read them strictly, and check that they still fit."""
