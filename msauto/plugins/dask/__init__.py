"""Servers planned, read and applied by the workers of a Dask cluster."""
