"""A listing read in pieces is the listing read whole: the same corpus, the same bounds, whatever the pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import get_ident
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.errors import UnreadableError
from msauto.model.clip_entries import LinkIndex, entries_of
from msauto.model.identity import compare_clips
from msauto.model.live import Asset, Entry, Listing, parse_folder, show_folder
from msauto.server.listing import ListingReading, parse_databases, read_arriving
from msauto.server.xml import Element, parse_document
from tests.entries import listed_entry
from tests.listing_bytes import parse_listing

CASES = sorted((Path(__file__).parents[2] / "cases" / "xml" / "listing").glob("*.json"))
HEAD = b"<StoredTree><Folder name=''>"
TAIL = b"</Folder></StoredTree>"


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def read(
    parts: Iterable[bytes], charset: str | None = None, *, asked: str = "", piece: int = 2**16
) -> Listing:
    reading = ListingReading("NEWS", parse_folder(asked), charset, piece=piece)
    for part in parts:
        reading.feed(part)
    return reading.close()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_answer_of_the_corpus_in_pieces(path: Path) -> None:
    data = path.with_suffix(".answer").read_bytes()
    case = json.loads(path.read_text(encoding="utf-8"))
    charset, asked = case.get("charset"), case["asked"]
    for size in (1, 3, 64, 1000):
        parts = pieces(data, size)
        if "error" in case:
            with pytest.raises(UnreadableError, match=case["error"]):
                read(parts, charset, asked=asked, piece=200)
            continue
        listing = read(parts, charset, asked=asked, piece=200)
        entries = [[show_folder(e.folder), e.title, e.link_id] for e in listing.entries]
        assert entries == case["entries"], size
        assert [show_folder(folder) for folder in listing.folders] == case["folders"], size


class Watched(ListingReading):
    """Notes the threads in which its tree grows."""

    def __init__(self) -> None:
        super().__init__("NEWS", ())
        self.threads: set[int] = set()

    def take(self, root: Element, size: int, *, has_ended: bool) -> None:
        self.threads.add(get_ident())
        super().take(root, size, has_ended=has_ended)


def test_a_tree_grows_in_one_thread() -> None:
    """Memory of lxml that two threads have written to is freed in a way that ends the process."""
    reading, chunks = Watched(), [HEAD + TAIL, b""]

    async def read_next() -> bytes:
        return chunks.pop(0)

    asyncio.run(read_arriving(read_next, reading, lambda _: None))
    assert reading.threads == {get_ident()}


# Against the tree ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["title", "frames", "create_time", "a&b", "Название", "name", "clip_name"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)


def xml_of(kind: str, attributes: dict[str, str], inner: str) -> str:
    return f"<{kind}{''.join(f' {name}={quoteattr(value)}' for name, value in attributes.items())}>{inner}</{kind}>"


ATTRS = st.builds(lambda name, text: xml_of("Attr", {"name": name}, escape(text)), NAMES, TEXTS)
VALUES = st.builds(
    lambda name, text: xml_of("Attr", {"name": name, "value": text}, ""), NAMES, TEXTS
)
PLAIN = st.builds(
    lambda name, text: xml_of(name, {}, escape(text)), st.sampled_from(["title", "Vendor"]), TEXTS
)
NESTED = st.builds(
    lambda text: f"<Vendor><Clip/><Attr name='title'>{escape(text)}</Attr></Vendor>", TEXTS
)
CLIP = "<Clip link_id='7'><Attr name='title'>T</Attr></Clip>".replace("'", '"')
SEEMING = st.sampled_from(
    [
        f"<!--{CLIP}-->",
        f"<![CDATA[{CLIP}]]>",
        f"<?pi {CLIP}?>",
        CLIP,
        f"<Attr name='a'>{CLIP}</Attr>",
    ]
)
CLIPS = st.builds(
    lambda own, parts: xml_of("Clip", own, "\n".join(parts)),
    st.fixed_dictionaries(
        {}, optional={"link_id": TEXTS | st.just("7"), "finalized": st.just("true"), "title": TEXTS}
    ),
    st.lists(st.one_of(ATTRS, ATTRS, VALUES, PLAIN, NESTED, SEEMING), max_size=5),
)
TREES = st.recursive(
    st.lists(CLIPS | SEEMING | st.just("<Other><Folder name='x'><Clip/></Folder></Other>"), max_size=3).map("".join),
    lambda inner: st.lists(
        st.builds(lambda name, parts: xml_of("Folder", {"name": name}, parts), TEXTS, inner), max_size=3
    ).map("".join),
    max_leaves=6,
)  # fmt: skip


@given(TREES, st.integers(1, 400), st.integers(20, 300))
def test_it_is_what_the_tree_says(tree: str, size: int, piece: int) -> None:
    data = f"<StoredTree>{tree}</StoredTree>".encode()
    (database,) = parse_databases(
        b'<Databases><Database name="NEWS">' + data + b"</Database></Databases>"
    )
    listing = read(pieces(data, size), piece=piece)
    assert listing == database.listing
    assert listing == parse_listing(data, "NEWS", ())
    for entry in listing.entries:
        assert entry.attributes == {name: entry.attributes[name] for name in entry.attributes}


@pytest.mark.parametrize("sign", ["\v", "\f", "x\0"])
def test_characters_that_xml_does_not_allow_are_refused_between_clips(sign: str) -> None:
    with pytest.raises(UnreadableError):
        read([HEAD + f"{CLIP}{sign}{CLIP}".encode() + TAIL])


def test_an_error_names_the_line_of_the_answer() -> None:
    lines = CLIP.replace("><", ">\n<") + "\n"
    with pytest.raises(UnreadableError, match="Oops line 14 and Folder, line 14"):
        read([HEAD + b"\n" + lines.encode() * 4 + b"<Oops></Folder>" + lines.encode()])


# Encodings -----------------------------------------------------------------------------------------------------


def cyrillic(codec: str, *, declared: str, before: int) -> bytes:
    head = f'<?xml version="1.0" encoding="{declared}"?>'.encode() + HEAD
    clip = "<Clip><Attr name='title'>Новости дня</Attr></Clip>".encode(codec)
    return head + b"<Clip/>" * before + clip + TAIL


@pytest.mark.parametrize("before", [0, 3, 20_000])
def test_the_encoding_is_told_by_what_is_not_ascii_however_late_it_comes(before: int) -> None:
    data = cyrillic("cp1251", declared="windows-1251", before=before)
    assert read([data], "utf-8").entries[-1].title == "Новости дня"
    data = cyrillic("utf-8", declared="utf-8", before=before)
    assert read([data], "windows-1251").entries[-1].title == "Новости дня"
    data = cyrillic("koi8-r", declared="x-klingon", before=before)
    assert read([data], "koi8-r").entries[-1].title == "Новости дня"


def test_an_encoding_that_breaks_later_is_an_error() -> None:
    data = cyrillic("utf-8", declared="utf-8", before=10_000).replace(
        TAIL, b"<Clip/>" * 10_000 + b"\xff" + TAIL
    )
    with pytest.raises(UnreadableError, match="encoding of the answer is unknown"):
        read([data])


@pytest.mark.scale
def test_a_sign_that_is_cut_by_a_piece_is_whole() -> None:
    data = cyrillic("utf-8", declared="utf-8", before=40)
    assert {read(pieces(data, 1), piece=piece).entries[-1].title for piece in range(150, 500)} == {
        "Новости дня"
    }


# Bounds --------------------------------------------------------------------------------------------------------


@pytest.mark.scale
@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([HEAD + b"<Clip><Attr name='a'>", *[b"x" * 65536] * 200], "larger than 9 MiB"),
        ([HEAD + b"<Clip>"] + [b"<a%d/>" % n for n in range(20_000)], "more than 10000 elements"),
        ([HEAD + b"<Clip " + b" ".join(b"a%d=''" % n for n in range(300)) + b"/><Clip/>"] + [b" "] * 65536, "256 att"),
        ([HEAD + b"<Clip>" + b"<a>" * 30_000], "depth"),
        ([HEAD + b"<Other>" + b"<a>" * 30_000], "depth"),
        ([b"<!--" + b"x" * 70_000 + b"--><!DOCTYPE a [<!ENTITY b 'c'>]>" + HEAD + TAIL], "DTD"),
        ([HEAD + b"<Clip/>" * 20_000], "incomplete"),
        ([HEAD + b"<Clip/>" * 20_000 + TAIL + b"text"], "incomplete"),
        ([b"<a:StoredTree>" + b"<b:Clip/>" * 20_000], "incomplete"),
        ([b"<!doctype html><title>Login</title>" + b" " * 70_000], "HTML page titled 'Login'"),
        ([b" "] * 100_000, "empty"),
        ([b"<xml>" + HEAD + TAIL + b" " * 70_000], "incomplete"),
    ],
    ids=["text", "attrs", "attributes", "deep-clip", "deep-other", "late-dtd", "cut", "behind", "prefixes", "html",
         "blank", "wrapper"],
)  # fmt: skip
def test_what_is_none_or_endless_is_an_error(parts: list[bytes], error: str) -> None:
    with pytest.raises(UnreadableError, match=error):
        read(parts)


@pytest.mark.parametrize(
    ("name", "most", "piece", "error"),
    [
        ("listing._MOST_CLIPS", 500, b"<Clip/>", "more than 500 clips and folders"),
        ("listing._MOST_FOLDERS", 500, b"<Folder/>", "more than 500 folders"),
        (
            "listing._MOST_FOLDERS",
            500,
            b"<Folder name='a'><Clip/></Folder>",
            "more than 500 folders",
        ),
        (
            "listing._MOST_NAMES",
            500,
            b"<Clip><Attr name='a%d'>1</Attr><b/></Clip>",
            "more than 500 names",
        ),
        ("listing._MOST_NAMES", 500, b"<Clip a%d='1'/>", "more than 500 names"),
    ],
)
def test_small_things_that_take_much_room_are_bounded_by_their_number(
    name: str, most: int, piece: bytes, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte, packed, may hold 50 million folders: what each takes of the memory counts, not its bytes."""
    monkeypatch.setattr(f"msauto.server.{name}", most)
    many = b"".join(piece % number if b"%d" in piece else piece for number in range(501))
    with pytest.raises(UnreadableError, match=error):
        read([HEAD + many + TAIL])
    few = b"".join(piece % number if b"%d" in piece else piece for number in range(240))
    assert read([HEAD + few + TAIL]) is not None


@pytest.mark.scale
@pytest.mark.parametrize("stray", [b"</xml>", b"</XML >\r\n", b" </xml></xml>"])
@pytest.mark.parametrize("size", [1, 5, 65536])
def test_a_stray_end_behind_a_large_document(stray: bytes, size: int) -> None:
    data = HEAD + b"<Clip title='T'/>" * 5_000 + TAIL + stray
    assert len(read(pieces(data, size), piece=1024).entries) == 5_000


@pytest.mark.parametrize("stray", [b"</xml>", b"</xml>" + b" " * 100])
def test_many_stray_ends_are_refused(stray: bytes) -> None:
    """They are held back until the document ends, and the time would grow with their square."""
    many = HEAD + TAIL + stray * (2**18 // len(stray))
    for parse in (lambda: read([many]), lambda: parse_document(many)):
        with pytest.raises(UnreadableError, match="not XML"):
            parse()


def test_prefixes_without_a_declaration_are_forgiven_wherever_they_come() -> None:
    clips = b"<Clip><Attr name='title'>T</Attr></Clip>" * 3_000 + b"<v:Clip v:link_id='7'/>" * 3_000
    listing = read([HEAD + clips + TAIL])
    assert [len(listing.entries), listing.entries[0].title, listing.entries[-1].link_id] == [
        6_000,
        "T",
        7,
    ]


# Values --------------------------------------------------------------------------------------------------------


def test_entries_are_a_sequence_of_values() -> None:
    clip = b"<Clip link_id='%d' finalized='%s'><Attr name='title'>T%d</Attr><Attr name='a&amp;b'>1</Attr></Clip>"
    entries = read(
        [HEAD + b"".join(clip % (n, b"true", n) for n in range(5)) + b"<Clip/>" + TAIL]
    ).entries
    assert [entries[n].title for n in range(6)] == ["T0", "T1", "T2", "T3", "T4", ""]
    assert entries[-2] == listed_entry((), "T4", 4, True, {"title": "T4", "a&b": "1"})
    assert list(entries[1:3]) == [entries[1], entries[2]]
    assert entries == tuple(entries)
    assert entries != entries[1:]
    with pytest.raises(IndexError):
        entries[6]
    texts = entries[0].attributes
    assert (dict(texts), dict(texts.items()), "title" in texts) == (texts, texts, True)
    assert (entries[-1].link_id, entries[-1].finalized, dict(entries[-1].attributes)) == (
        None,
        None,
        {},
    )
    with pytest.raises(KeyError):
        texts["nothing"]


WORDS = st.sampled_from(["A", "B", "", "Ж"])
TIMES = st.sampled_from(["", "2026-11-20T10:00:00", "2026-11-20T10:00:00Z"])
FRAMES = st.sampled_from(["", "1", "2"])
ENTRIES = st.builds(
    lambda folder, title, link, finalized, name, time, frames: listed_entry(
        (folder,), title, link, finalized, {"orig_name": name, "create_time": time, "frames": frames}
    ),
    WORDS, WORDS, st.none() | st.integers(0, 3), st.sampled_from([None, True, False]), WORDS, TIMES, FRAMES,
)  # fmt: skip


@given(st.lists(ENTRIES, max_size=12), ENTRIES, st.booleans())
def test_the_index_finds_what_looking_at_all_finds(
    entries: list[Entry], like: Entry, in_doubt: bool
) -> None:
    index = LinkIndex(entries)
    for number, entry in enumerate(entries):
        index.add(number, entry)
    asset: Any = Asset(
        like.title,
        like.folder,
        link_id=like.link_id,
        finalized=like.finalized,
        attributes=like.attributes,
    )
    found = index.entries_of(asset, in_doubt=in_doubt)
    assert found == entries_of(asset, entries, in_doubt=in_doubt)
    bearing = sorted((entry for entry in entries if entry.title == asset.title), key=repr)
    assert (
        sorted((e for e in (*found.same, *found.namesakes) if e.title == asset.title), key=repr)
        == bearing
    )
    assert all(
        e.title == asset.title and compare_clips(asset, e).answer == "other"
        for e in found.namesakes
    )
    shown = {
        compare_clips(asset, e).answer
        for e in found.same
        if e.title != asset.title and e.link_id is None
    }
    assert shown <= ({"same", "unknown"} if in_doubt else {"same"})


def test_an_index_of_nothing() -> None:
    assert LinkIndex(()).entries_of(Asset("A")).same == ()
