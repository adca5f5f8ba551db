"""Where work runs: in this process, or in slices on the workers of a Dask cluster.

``dask`` and ``distributed`` are imported in :mod:`.dask_runner` and :mod:`.slices` only, and only with ``--on``.
"""
