"""Features and the versions that they came with (interface, «Versions»)."""

from __future__ import annotations

import pytest

from msauto.errors import UnsupportedError
from msauto.model.requests import Feature, feature_of_command, require, require_field, supports
from msauto.model.server import ServerSpec


def spec(*version: int) -> ServerSpec:
    return ServerSpec("studio-a", "http://studio-a:7901", version=version or None)


@pytest.mark.parametrize("feature", Feature)
def test_gate_opens_at_its_version(feature: Feature) -> None:
    major, minor, patch = feature.since
    before = (major, minor, patch - 1) if patch else (major, minor - 1, 999)
    assert supports(spec(), feature)
    assert supports(spec(*feature.since), feature)
    assert supports(spec(*feature.since, 0), feature)
    assert supports(spec(3), feature)
    assert not supports(spec(*before), feature)
    with pytest.raises(UnsupportedError) as caught:
        require(spec(*before), feature)
    message = str(caught.value)
    assert ".".join(map(str, feature.since)) in message
    assert ".".join(map(str, before)) in message
    assert "studio-a" in message


def test_a_link_field_has_its_version() -> None:
    require_field(spec(2, 9, 86), "user_1")
    require_field(spec(2, 9, 87), "user_0")
    with pytest.raises(UnsupportedError, match=r"SETFIELD on user_0 came with version 2\.9\.87"):
        require_field(spec(2, 9, 86), "user_0")


def test_numbers_are_compared_as_numbers() -> None:
    assert supports(spec(2, 10), Feature.KEY_ID)
    assert not supports(spec(2, 9, 9), Feature.KEY_ID)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("RESTORE", Feature.RESTORE),
        ("SETUSERFIELDS", Feature.SET_USER_FIELDS),
        ("CREATEMARKER", Feature.CREATE_MARKER),
        ("PARTNER_MOVE_TO_ASSET", Feature.PARTNER_MOVE_TO_ASSET),
        ("COPYLINK", None),
        ("SOMETHING", None),
    ],
)
def test_features_of_commands(name: str, feature: Feature | None) -> None:
    assert feature_of_command(name) is feature
