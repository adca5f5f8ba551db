"""Features and the product version that each came with (interface, «Versioning»)."""

from __future__ import annotations

from enum import Enum

from msauto.errors import UnsupportedError
from msauto.interface.fields import LINK_FIELD
from msauto.interface.requests import namespace_of
from msauto.model.plan import Address
from msauto.model.server import ServerSpec


class Feature(Enum):
    """A feature of the interface: its name in messages, and the product version that introduced it.

    The name of a command's feature is the command.
    """

    LOAD_XMP = ("loading XMP metadata through a connector", (2, 0, 60))
    RESTORE = ("RESTORE", (2, 0, 160))
    THUMBNAIL = ("PNG thumbnails (GETICON)", (2, 3, 63))
    FOLDERLIST = ("format=folderlist", (2, 3, 90))
    SET_USER_FIELDS = ("SETUSERFIELDS", (2, 6, 1))
    CREATE_MARKER = ("CREATEMARKER", (2, 6, 1))
    DELETE_MARKER = ("DELETEMARKER", (2, 6, 1))
    PARTNER_EXPORT_VERSION = ("PARTNER_EXPORT_VERSION", (2, 8, 0))
    PARTNER_COPY_PROGRAM_FIELDS = ("PARTNER_COPY_PROGRAM_FIELDS", (2, 8, 23))
    PARTNER_MOVE_TO_ASSET = ("PARTNER_MOVE_TO_ASSET", (2, 8, 40))
    KEY_ID = ("NS:ID in place of a title", (2, 9, 69))
    GET_USER_FIELDS = ("reading XMP fields (GETUSERFIELDS)", (2, 9, 69))

    def __init__(self, title: str, since: tuple[int, ...]) -> None:
        self.title = title
        self.since = since


def feature_of_command(command: str) -> Feature | None:
    """Return the feature that a command of the interface needs; ``None`` for a basic or unknown command."""
    return next((feature for feature in Feature if feature.title == command), None)


def supports(spec: ServerSpec, feature: Feature) -> bool:
    """Return whether the configured product version has the feature; no version means the newest."""
    return _reaches(spec, feature.since)


def require(spec: ServerSpec, feature: Feature, *, need: str = "") -> None:
    """Raise :class:`UnsupportedError`, naming both versions, if the configured product version lacks the feature.

    ``need`` names what it is needed for, where the playbook does not show it.
    """
    _require(spec, f"{need}: {feature.title}" if need else feature.title, feature.since)


def require_field(spec: ServerSpec, name: str) -> None:
    """Raise :class:`UnsupportedError` where the set product version cannot set this link field."""
    field = LINK_FIELD.get(name)
    if field is not None and field.since is not None:
        _require(spec, f"SETFIELD on {name}", field.since)


def _require(spec: ServerSpec, title: str, since: tuple[int, ...]) -> None:
    if spec.version is not None and not _reaches(spec, since):
        raise UnsupportedError(
            f"{title} came with version {show_version(since)}, and this server is set to {show_version(spec.version)}",
            server=spec.name,
            remedy="update the server, or correct `version` in its inventory entry",
        )


def _reaches(spec: ServerSpec, since: tuple[int, ...]) -> bool:
    return spec.version is None or _padded(spec.version) >= _padded(since)


def require_address(spec: ServerSpec, address: Address) -> None:
    """Raise :class:`UnsupportedError` if the address has the form ``NS:ID`` and the product version lacks it."""
    if address.namespace:
        require(spec, Feature.KEY_ID)
    elif namespace_of(address, spec.dialect):
        need = f"the title {address.name!r} holds a colon (dialect `title_address: {spec.dialect.title_address}`)"
        require(spec, Feature.KEY_ID, need=need)


def show_version(version: tuple[int, ...]) -> str:
    """Return a version as text: ``2.9.87``."""
    return ".".join(str(number) for number in version)


def _padded(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0, 0)[: max(4, len(version))]
