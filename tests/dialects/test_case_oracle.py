"""The oracle of the cases finds what is wrong: a wrong dialect, a thing too much, a thing undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from msauto.model.desired import ResolvedPlaybooks
from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.simulator import SimDialect, SimMarker, Simulator
from tests.dialects.case_seed import load_cases
from tests.dialects.fitting import ours_of
from tests.dialects.test_cases_on_dialects import Play, play
from tests.stage import Stage

CASES = {case.name: case for case in load_cases()}
Spoil = Callable[[Simulator], None]


@dataclass
class SpoiledStage(Stage):
    """Where something happens to the store that no plan names."""

    spoil: Spoil = lambda _: None

    def applied(self, plan: Plan, resolved: ResolvedPlaybooks, *, forks: int = 8) -> Result:
        result = super().applied(plan, resolved, forks=forks)
        self.spoil(self.sim)
        return result


@pytest.mark.parametrize(
    ("name", "server", "ours"),
    [
        ("marker/moved_by_uid", {"marker_update": "clear"}, {"marker_update": "changed"}),
        ("xmp/all_in_one", {"list_separator": ";"}, {"list_separator": ","}),
        ("segment/from_the_in_point", {"position_origin": "in"}, {"position_origin": "file"}),
        ("segment/wrong_number", {"segment_update": "ignore"}, {"segment_update": "overwrite"}),
        ("link/absent_by_title", {"link_delete": "clip"}, {"link_delete": "by_title"}),
        ("link/no_such_folder", {"folder_missing": "refuse"}, {"folder_missing": "create"}),
        ("rss_item/document", {"rss_update": "duplicate"}, {"rss_update": "put"}),
    ],
)  # fmt: skip
def test_a_wrong_dialect(
    name: str, server: dict[str, str], ours: dict[str, str], sim: Simulator, tmp_path: Path
) -> None:
    switches = SimDialect().with_values(server)
    told = ours_of(server) | ours
    with pytest.raises(AssertionError):
        Play(CASES[name], Stage(sim, tmp_path, told), switches, told)()


def _other_clip(sim: Simulator) -> None:
    sim.state.clip("Bystander").home.fields["comment"] = "not mine"


def _other_field(sim: Simulator) -> None:
    sim.state.clip("Film").home.fields["user_7"] = "x"


def _undone(sim: Simulator) -> None:
    sim.state.clip("Film").home.fields["comment"] = "raw"


def _twin(sim: Simulator) -> None:
    film = sim.state.clip("Film")
    film.markers.append(SimMarker(99, film.markers[-1].pos, dict(film.markers[-1].fields)))


def _folder(sim: Simulator) -> None:
    sim.state.databases["NEWS"].make_folder("Stray")


@pytest.mark.parametrize("spoil", [_other_clip, _other_field, _undone, _twin, _folder])
def test_a_store_that_is_not_as_it_must_be(spoil: Spoil, sim: Simulator, tmp_path: Path) -> None:
    ours = ours_of({})
    with pytest.raises(AssertionError, match=r"expected|is too much|is missing"):
        Play(CASES["together/the_issue"], SpoiledStage(sim, tmp_path, ours, spoil=spoil), SimDialect(), ours)()


def test_nothing_spoiled(sim: Simulator, tmp_path: Path) -> None:
    ours = ours_of({})
    Play(CASES["together/the_issue"], SpoiledStage(sim, tmp_path, ours), SimDialect(), ours)()


@pytest.mark.parametrize(
    "name",
    ["marker/new_from_the_in_point", "marker/from_the_in_point", "segment/from_the_in_point", "thumbnail/in_point"],
)
def test_positions_from_the_in_point(name: str, sim: Simulator, tmp_path: Path) -> None:
    """The whole way, as verification counts from there as well; all other cases are played by the slow tests."""
    play(CASES[name], {"position_origin": "in"}, sim, tmp_path)
