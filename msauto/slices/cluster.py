"""A Dask cluster as the commands use it (``--on``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from msauto.applying.recovery import Settle
from msauto.applying.states import RetryPolicy
from msauto.errors import ClusterError
from msauto.ledger import Ledger, LockScope
from msauto.model.plan import Target
from msauto.model.ports import Clock, NamedMemory, Runner
from msauto.model.server import ServerSpec
from msauto.model.snapshot import ListedEntry, Snapshot
from msauto.secrets.redaction import Secrets
from msauto.server.snapshots import Take
from msauto.slices.apply_slices import ApplyOnWorkers, SharedApply, settle_on_workers
from msauto.slices.contents import RunContents
from msauto.slices.remote_server import RemoteServer
from msauto.slices.survey_slices import RemoteSurvey

if TYPE_CHECKING:
    from msauto.running.dask_runner import DaskRunner


class Cluster:
    """What runs on a cluster in one run."""

    def __init__(self, runner: DaskRunner, contents: RunContents) -> None:
        self._runner = runner
        self._contents = contents

    @asynccontextmanager
    async def server(self, server: ServerSpec, clock: Clock, *, forks: int) -> AsyncIterator[RemoteServer]:
        """Return a server that the workers read, ``forks`` items at a time."""
        remote = RemoteServer(self._runner, server, clock, forks=forks, supply=self._contents.supply)
        try:
            yield remote
        finally:
            await remote.close()

    def applying(
        self, servers: Sequence[ServerSpec], ledger: Ledger, shared: SharedApply, *, forks: int
    ) -> ApplyOnWorkers:
        """Return what applies targets on the workers, ``forks`` at a time on each server."""
        return ApplyOnWorkers(self._runner, {server.name: server for server in servers}, ledger, shared, forks)

    def taking(self, remote: RemoteServer) -> Take:
        """Return what takes snapshots for an export."""

        async def here(item: ListedEntry | str) -> Snapshot:
            raise AssertionError(f"{item}: a snapshot needs nothing of this machine")

        return lambda reading, items: remote.map(reading, items, here=here)

    def settling(
        self,
        servers: Sequence[ServerSpec],
        ledger: Ledger,
        run: str,
        scopes: Collection[LockScope],
        secrets: Secrets,
        *,
        forks: int,
        available: Callable[[Target], bool],
    ) -> Settle:
        """Return what settles by reading, on the workers, what a dead run left in progress.

        ``available``: no other run may write to a target.
        """
        shared = SharedApply(run, ledger.shared_place, scopes, secrets, None, RetryPolicy(), settles=True)
        return partial(settle_on_workers, self.applying(servers, ledger, shared, forks=forks), available)

    def surveying(self, remote: RemoteServer, memory: NamedMemory, secrets: Secrets) -> Runner:
        """Return what plans the targets of a server."""
        return cast("Runner", RemoteSurvey(remote, memory, secrets))


@asynccontextmanager
async def open_cluster(address: str, servers: Sequence[ServerSpec], secrets: Secrets) -> AsyncIterator[Cluster]:
    """Connect to the cluster at an address; raises :class:`ClusterError` before anything is sent."""
    try:
        from msauto.running.dask_runner import connected
    except ImportError as error:
        raise ClusterError(
            f"--on {address} needs the packages dask and distributed", remedy="pip install 'msauto[dask]'"
        ) from error
    contents = RunContents(secrets)
    async with connected(address, servers, contents) as runner:
        yield Cluster(runner, contents)
