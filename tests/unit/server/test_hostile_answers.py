"""Answers cut at every byte, and answers made to cost: an error or the same value, in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import UnreadableError
from msauto.model.live import parse_folder
from msauto.server.listing import parse_databases
from msauto.server.parsers import parse_channel, parse_clip, parse_xmp
from tests.listing_bytes import parse_listing

CASES = Path(__file__).parents[2] / "cases" / "xml"
LONGEST = 3000
"""Longer answers are cut at every tenth byte, and at every one of their last hundred."""


def whole_answers() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*/*.answer")):
        case = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if path.parent.name != "failure" and "error" not in case:
            found.append(pytest.param(path, case, id=f"{path.parent.name}-{path.stem}"))
    return found


def parser(path: Path, case: dict[str, Any]) -> Callable[[bytes], object]:
    charset = case.get("charset")
    match path.parent.name:
        case "listing":
            return lambda data: parse_listing(data, "NEWS", parse_folder(case["asked"]), charset)
        case "clip":
            return lambda data: parse_clip(data, charset)
        case "channel":
            return lambda data: parse_channel(data, "ticker", charset)
        case _:
            return lambda data: parse_xmp(
                data, case.get("separator", ","), charset, asked=case.get("asked")
            )


@pytest.mark.parametrize(("path", "case"), whole_answers())
def test_cut_anywhere_it_is_an_error_or_the_same(path: Path, case: dict[str, Any]) -> None:
    data = path.read_bytes()
    is_text = path.parent.name == "xmp" and b"<" not in data[:40].replace(b"\x00", b"")
    if is_text:
        return  # lines that end early are lines: only HTTP's Content-Length tells, which tests/wire proves
    parse = parser(path, case)
    desired = parse(data)
    cuts = [
        n for n in range(len(data)) if len(data) <= LONGEST or n % 10 == 0 or n > len(data) - 100
    ]
    for cut in cuts:
        try:
            found = parse(data[:cut])
        except UnreadableError:
            continue
        nothing = (
            path.parent.name == "xmp" and not found
        )  # unreadable, or an empty answer: an asset without fields
        assert nothing or found == desired, data[:cut][-60:]


NAMESPACES = b" ".join(b'xmlns:a%d="u"' % number for number in range(257))


@pytest.mark.parametrize(
    ("parse", "document", "message"),
    [
        (
            parse_clip,
            b"<Clip>" + b"<a>" * 64 + b"</a>" * 64 + b"</Clip>",
            "the elements of the answer are nested",
        ),
        (parse_clip, b"<Clip " + NAMESPACES + b"/>", "more than 256 namespaces"),
        (
            parse_clip,
            b"<Clip>" + b"<Marker uid='x' pos='1'/>" * 1001 + b"</Clip>",
            "1,000 numbers of the answer",
        ),
        (
            parse_clip,
            b"<Clip>" + b"<Segment seg_num='1'/>" * 1001 + b"</Clip>",
            "1,000 numbers of the answer",
        ),
        (
            parse_clip,
            b"<Clip>" + b"<Link link_id='x'/>" * 1001 + b"</Clip>",
            "1,000 numbers of the answer",
        ),
        (
            parse_clip,
            b"<!--" + b"a" * 70_000 + b"--><!DOCTYPE a><Clip/>",
            "more than 64 KiB of comments precede",
        ),
        (
            lambda data: parse_listing(data, "NEWS", ()),
            b"<StoredTree><Folder name=''>"
            + b"<Folder name='a'>" * 33
            + b"</Folder>" * 34
            + b"</StoredTree>",
            "the folders of the answer are nested to a depth of more than 32",
        ),
    ],
    ids=["depth", "namespaces", "markers", "segments", "links", "comments", "folders"],
)
def test_what_no_answer_needs_is_refused(
    parse: Callable[[bytes], object], document: bytes, message: str
) -> None:
    with pytest.raises(UnreadableError, match=message):
        parse(document)


def test_folders_are_read_32_deep() -> None:
    folders = b"<Folder name='a'>" * 32 + b"<Clip title='Film'/>" + b"</Folder>" * 32
    listing = parse_listing(
        b"<StoredTree><Folder name=''>" + folders + b"</Folder></StoredTree>", "NEWS", ()
    )
    assert [entry.folder for entry in listing.entries] == [("a",) * 32]


def test_an_unknown_element_is_kept_with_the_namespaces_that_it_uses() -> None:
    many = b" ".join(b'xmlns:a%d="u%d"' % (number, number) for number in range(200))
    items = b"".join(b"<item><a%d:x b='1'/></item>" % number for number in range(200))
    channel = parse_channel(b"<rss " + many + b">" + items + b"</rss>", "ticker")
    assert channel.items[7].extra == {"<a7:x>": '<a7:x xmlns:a7="u7" b="1"/>'}


def test_a_value_of_many_lines_is_one_text() -> None:
    assert parse_xmp(b"dc:title=a\n\nb\n c=\n") == {"dc:title": ("a\n\nb",), "c": ()}


def test_a_tree_in_a_tree_is_read_once() -> None:
    nested = (
        b"<database name='a'><StoredTree><Folder name='F'/>" * 3 + b"</StoredTree></database>" * 3
    )
    databases = parse_databases(b"<databases>" + nested + b"</databases>")
    assert [database.listing is not None for database in databases] == [True, False, False]


def test_more_elements_than_a_clip_can_have_are_refused_before_they_take_memory() -> None:
    markers = b'<Marker uid="1" pos="0"/>' * 600_000
    with pytest.raises(UnreadableError, match="more than 1,500,000 elements and attributes"):
        parse_clip(b"<Clip>" + markers + b"</Clip>")


HOSTILE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
# CPU seconds, which do not depend on other processes, for all parsers: the square of these lengths takes hours.
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from msauto.errors import UnreadableError
from msauto.server.parsers import parse_channel, parse_channels, parse_clip, parse_xmp
from msauto.server.error_answers import parse_failure, show_body
from msauto.server.listing import parse_databases, parse_mam
from tests.listing_bytes import parse_listing
parsers = [
    parse_clip, lambda d: parse_listing(d, "NEWS", ("a",)), parse_databases, parse_mam,
    lambda d: parse_channel(d, "c"), parse_channels, parse_xmp, lambda d: parse_xmp(d, asked="dc:x"),
    parse_failure, show_body,
]
data = eval(sys.argv[1])
for parse in parsers:
    try:
        parse(data)
    except UnreadableError:
        pass
print("bounded")
"""


@pytest.mark.scale
@pytest.mark.parametrize(
    "document",
    [
        "b'<!DOCTYPE a [' + b''.join(b'<!ENTITY a%d \"&a;&a;\">' % n for n in range(40)) + b']><a>&a9;</a>'",
        "b'<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>'",
        "b'<Clip>' * 300_000",
        "b'<StoredTree>' + b'<Folder name=\"a\">' * 300_000",
        "b'<Clip a=\"' + b'x' * 20_000_000 + b'\"/>'",
        "b'<Clip>' + b'x' * 20_000_000 + b'</Clip>'",
        "b'<Clip ' + b' '.join(b'a%d=\"\"' % n for n in range(100_000)) + b'/>'",
        "b'<rss><item ' + b' '.join(b'a%d=\"\"' % n for n in range(100_000)) + b'/></rss>'",
        "b'<Clip ' + b' '.join(b'a%d:b=\"\"' % n for n in range(100_000)) + b'/>'",
        "b'<Clip>' + b''.join(b'<a%d:b/>' % n for n in range(100_000)) + b'</Clip>'",
        "b'<Clip/>' + b'</xml>' * 500_000",
        "b'<script ' * 500_000",
        "b'<' * 1_000_000",
        "b'<!--' * 500_000",
        "b'<?xml ' + b'encoding ' * 500_000",
        "b' ' * 20_000_000",
        "b'\\x00' * 5_000_000",
        "b'<Clip><' + b'n' * 1_000_000 + b'/></Clip>'",
        (
            "b'<rss ' + b' '.join(b'xmlns:a%d=\"u%d\"' % (n, n) for n in range(50_000)) + b'>'"
            " + b''.join(b'<item><a%d:x/></item>' % n for n in range(50_000)) + b'</rss>'"
        ),
        (
            "b'<rss ' + b' '.join(b'xmlns:a%d=\"u%d\"' % (n, n) for n in range(250)) + b'>'"
            " + b''.join(b'<item><a%d:x b=\"\"/></item>' % (n % 250) for n in range(100_000)) + b'</rss>'"
        ),
        "b'<?a b?>' * 500_000 + b'<Clip/>'",
        "b'<Clip>' + b'<?a b?><!--c-->' * 500_000 + b'</Clip>'",
        "b'<Clip><Attr name=\"a\">' + b'<![CDATA[a]]>&#65;&amp;' * 150_000 + b'</Attr></Clip>'",
        "b'<Clip>' + b'<Attr name=\"a\">x</Attr>' * 150_000 + b'</Clip>'",
        "b'<StoredTree>' + b'<Clip/>' * 300_000 + b'</StoredTree>'",
        "b'<StoredTree>' + b'<Folder name=\"abcdefgh\">' * 250 + b'<Clip a=\"\"/>' * 300_000 + b'</Folder>' * 250",
        (
            "b'<databases>' + b'<database name=\"a\"><StoredTree>' * 10 + b'<Folder name=\"a\"/>' * 100_000"
            " + b'</StoredTree></database>' * 10 + b'</databases>'"
        ),
        "b'<r><Description>' + b'<li>a</li>' * 250_000 + b'</Description></r>'",
        "b'dc:title=a' + b'\\n' * 7_000_000",
        "b'{\"a\":[' + b'[],' * 1_000_000 + b'[]]}'",
        "b'error' + b': ' * 1_000_000",
        "('<Clip><Attr name=\"title\">' + '\\u0301\\u0327' * 1_000_000 + '</Attr></Clip>').encode()",
        "b'<Clip><Marker pos=\"1\" uid=\"' + b'9' * 1_000_000 + b'\"/></Clip>'",
    ],
    ids=lambda document: document[:40],
)
def test_no_answer_costs_more_than_its_length(document: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", HOSTILE, document], capture_output=True, text=True, check=False
    )
    assert made.stdout == "bounded\n", made.stderr[-600:]
