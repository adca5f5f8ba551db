"""One reading of a folder for many verifications, none of which sees an old state."""

import asyncio
from typing import cast

import pytest

from msauto.applying.verification import SharedReads
from msauto.errors import UnreadableError
from msauto.model.live import Entry, Folder, Listing
from msauto.model.ports import Reader


class SlowReader:
    """Answers with the number of the reading, taken when it began."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self.fails = False

    def fresh(self) -> "SlowReader":
        return self

    async def read_folder(self, database: str, folder: Folder) -> Listing:
        self.begun += 1
        number = self.begun
        await self.go.wait()
        if self.fails:
            raise UnreadableError(f"reading {number} failed")
        return Listing(folder, (Entry(folder, f"reading {number}"),))


async def ask(shared: SharedReads, reader: SlowReader, folder: str = "Tonight") -> str:
    listing = await shared.read(cast("Reader", reader), "NEWS", (folder,))
    assert listing is not None
    return listing.entries[0].title


def test_a_reader_during_a_reading_shares_the_next() -> None:
    async def main() -> list[str]:
        shared, reader = SharedReads(), SlowReader()
        asks = [asyncio.ensure_future(ask(shared, reader))]
        await asyncio.sleep(0)
        asks += [asyncio.ensure_future(ask(shared, reader)) for _ in range(3)]
        await asyncio.sleep(0)
        reader.go.set()
        answers = await asyncio.gather(*asks)
        answers.append(await ask(shared, reader))
        return answers

    assert asyncio.run(main()) == ["reading 1", *["reading 2"] * 3, "reading 3"]


def test_other_folders_do_not_wait() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        asks = [asyncio.ensure_future(ask(shared, reader, folder)) for folder in ("a", "b")]
        await asyncio.sleep(0)
        assert reader.begun == 2
        reader.go.set()
        await asyncio.gather(*asks)

    asyncio.run(main())


def test_an_error_reaches_all_who_share_it() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        reader.fails = True
        asks = [asyncio.ensure_future(ask(shared, reader)) for _ in range(3)]
        await asyncio.sleep(0)
        reader.go.set()
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert [str(answer) for answer in answers] == ["reading 1 failed", "reading 2 failed", "reading 2 failed"]
        reader.fails = False
        assert await ask(shared, reader) == "reading 3"

    asyncio.run(main())


def test_a_cancelled_reader_does_not_block_the_others() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        first = asyncio.ensure_future(ask(shared, reader))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(ask(shared, reader))
        await asyncio.sleep(0)
        first.cancel()
        reader.go.set()
        assert await second == "reading 2"
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(main())
