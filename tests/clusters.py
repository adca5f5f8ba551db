"""Dask clusters of tests: on the loopback interface, without a dashboard, quiet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask


@dataclass(frozen=True)
class Cluster:
    """``address`` is what ``--on`` takes."""

    address: str
    cluster: Any


@contextmanager
def threads_cluster(workers: int, resources: Mapping[str, float]) -> Iterator[Cluster]:
    """A scheduler and workers that are threads of this process: they start in a moment."""
    with _cluster(n_workers=workers, threads_per_worker=2, processes=False, resources=dict(resources)) as found:
        yield found


@contextmanager
def process_cluster(workers: int, **options: Any) -> Iterator[Cluster]:
    """A scheduler, and workers that are processes of their own."""
    with _cluster(n_workers=workers, threads_per_worker=1, processes=True, **options) as found:
        yield found


@contextmanager
def _cluster(**options: Any) -> Iterator[Cluster]:
    settings = {
        "distributed.scheduler.locks.lease-timeout": "3s",
        "distributed.scheduler.locks.lease-validation-interval": "500ms",
    }
    with dask.config.set(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from distributed import LocalCluster

        with LocalCluster(
            host="127.0.0.1",
            protocol="tcp://",
            dashboard_address=None,
            worker_dashboard_address=None,
            silence_logs=50,
            **options,
        ) as cluster:
            yield Cluster(cluster.scheduler_address.replace("tcp://", "dask://"), cluster)
