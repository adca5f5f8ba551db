"""A freeze that begins on the way: what is begun is finished, what is not begun is not attempted."""

from __future__ import annotations

from tests.unit.applying.applying_world import Stage, fields_target


def test_no_target_begins_once_it_is_frozen() -> None:
    stage = Stage()
    targets = [fields_target(stage.world, f"Film {number}", 2) for number in range(4)]
    asked: list[int] = []

    def frozen() -> str | None:
        asked.append(len(stage.world.sent))
        return "a freeze holds" if stage.world.sent else None

    result = stage.run(*targets, forks=1, frozen=frozen)
    assert [each.outcome for each in result.targets] == ["changed", "not attempted", "not attempted", "not attempted"]
    assert {each.message for each in result.targets[1:]} == {"a freeze holds"}
    assert asked == [0, 2, 2, 2]
    assert not result.ok
    assert not result.interrupted
