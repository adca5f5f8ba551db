"""Plans for the tests of the ledger: every kind of value that a plan can hold."""

from fractions import Fraction

from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Address, Body, Change, EmptiedList, InputHash, Plan, Request, Target
from msauto.model.snapshot import Effect, Seen, digest

SOURCE = TaskSource("news.yml", 9, 18, "Describe the episode")


def field_request(index: int, value: str = "Ready") -> Request:
    return Request(
        "POST",
        f"/storage/NEWS@Evening?command=SETFIELD&name=user_{index}&val={value}",
        changes=(index,),
        effects=(Effect("field", f"user_{index}", None, value, visible=False),),
    )


def target(name: str = "Evening", requests: int = 2) -> Target:
    return Target(
        server="studio-a",
        database="NEWS",
        kind="asset",
        name=name,
        folder="Raw/2026",
        fingerprint="sha256:00",
        changes=(
            Change("change", "field", "comment", "raw", "Новости дня", "live", True, SOURCE),
            Change(
                "add",
                "marker",
                "Cue Point@750",
                None,
                {"frame": 750, "track": "Cue Point"},
                "live",
                True,
                SOURCE,
            ),
        ),
        requests=tuple(field_request(index) for index in range(requests)),
        address=Address(name),
        address_after=Address(name),
        clip=ClipIdentity(7, "2026-11-20T10:00:00"),
        depends_on=Seen.of({"fact frames": digest(250)}),
        rate=Fraction(30000, 1001),
        wait=1800.0,
        emptied=(EmptiedList("marker", 3),),
        places=("Playout/Tonight", ""),
    )


def channel() -> Target:
    put = Request(
        "PUT",
        "/rss/ticker/n-1.txt",
        (),
        Body.of("Überschrift".encode()),
        (Effect("rss_item", "n-1"),),
    )
    return Target(
        "studio-a", "", "rss_channel", "ticker", requests=(put,), address=Address("ticker")
    )


def plan(*targets: Target) -> Plan:
    return Plan(
        "2026-11-20T10:15:00Z",
        "0.1.0",
        (InputHash("news.yml", "ab"),),
        targets or (target(), channel()),
    )
