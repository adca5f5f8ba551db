"""Any name survives the way to the server; and no bytes from a server are more than an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qsl, unquote

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.errors import UnreadableError
from msauto.model.live import parse_folder
from msauto.model.plan import Address
from msauto.model.requests import asset_path, folder_path, folder_value, query
from msauto.server.error_answers import parse_failure, show_body
from msauto.server.listing import parse_databases, parse_mam
from msauto.server.parsers import parse_channel, parse_channels, parse_clip, parse_xmp
from tests.examples import examples
from tests.listing_bytes import parse_listing
from tests.tables import CASES

NAMES = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("/\\@:%?#&+=. \n'\"")),
    min_size=1,
    max_size=30,
)
SAFE = re.compile(
    r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2}|%0a)*"
)  # a new line in small letters, as the interface has it
# Bytes that look like answers find more than bytes that do not.
PIECES = st.sampled_from(
    [
        *(
            text.encode()
            for text in yaml.safe_load((CASES / "xml" / "pieces.yml").read_text(encoding="utf-8"))
        ),
        *(b"\xff\xfe", b"\x00", b"\xef\xbb\xbf"),
    ]
)
ANSWERS = st.one_of(st.binary(max_size=80), st.lists(PIECES, max_size=10).map(b"".join))
CHARSETS = st.sampled_from(
    [None, "utf-8", "windows-1251", "utf-16", "zlib", "idna", "x", "\x00", ""]
)


def unescape(text: str) -> str:
    """The backslash rule of a server, written down once more and otherwise."""
    return re.sub(r"\\([\\/])", r"\1", text)


def split(text: str) -> list[str]:
    """Split a decoded path at the slashes that no backslash escapes."""
    return [unescape(part) for part in re.findall(r"(?:\\.|[^/\\])+", text, re.DOTALL)]


@given(NAMES, NAMES)
def test_title_survives(database: str, title: str) -> None:
    path = asset_path(database, Address(title))
    before, at, after = path.partition("@")
    assert at
    assert SAFE.fullmatch(after)
    assert before.count("/") == 2
    assert unquote(before.split("/")[2], errors="strict") == database
    assert unescape(unquote(after, errors="strict")) == title


@given(NAMES, st.lists(NAMES, max_size=4).map(tuple))
def test_folder_survives(database: str, folder: tuple[str, ...]) -> None:
    segments = folder_path(database, folder).split("/")[2:]
    assert len(segments) == 1 + len(folder)
    assert all(SAFE.fullmatch(segment) and segment not in {"", ".", ".."} for segment in segments)
    assert [unescape(unquote(segment, errors="strict")) for segment in segments[1:]] == list(folder)


@given(st.lists(NAMES, max_size=4).map(tuple))
def test_folder_of_a_link_survives(folder: tuple[str, ...]) -> None:
    ((_, value),) = parse_qsl(query([("folder", folder_value(folder))])[1:], keep_blank_values=True)
    assert split(value) == list(folder)
    assert parse_folder(value) == folder


@given(st.lists(st.tuples(NAMES, st.text(st.characters(codec="utf-8"))), min_size=1, max_size=5))
def test_parameters_survive(pairs: list[tuple[str, str]]) -> None:
    text = query(pairs)
    assert re.fullmatch(r"[A-Za-z0-9._~%=&-]*", text[1:])
    assert (
        parse_qsl(text[1:], keep_blank_values=True, strict_parsing=True, errors="strict") == pairs
    )


@settings(max_examples=examples(600))
@given(ANSWERS, CHARSETS)
def test_any_bytes_are_an_answer_or_an_error(data: bytes, charset: str | None) -> None:
    parsers: list[Callable[[], object]] = [
        lambda: parse_listing(data, "NEWS", ("a",), charset),
        lambda: parse_clip(data, charset),
        lambda: parse_channel(data, "c", charset),
        lambda: parse_channels(data, charset),
        lambda: parse_databases(data, charset),
        lambda: parse_mam(data, charset),
    ]
    for parse in parsers:
        with suppress(UnreadableError):
            parse()
    parse_xmp(data, ",", charset)
    parse_xmp(data, ",", charset, asked="dc:x")
    failure = parse_failure(data, charset)
    for text in (show_body(data, charset), failure.text if failure else ""):
        assert len(text) <= 300
        assert text.isprintable() or not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", text)
        text.encode()
