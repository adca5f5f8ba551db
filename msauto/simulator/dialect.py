"""The dialect: how the simulated server answers where the interface is silent.

Each unknown of the interface ("not shown") is a switch with named values; the first one is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast


def _switch(*choices: str) -> str:
    return field(default=choices[0], metadata={"choices": choices})


def _text(default: str) -> str:
    return field(default=default, metadata={"choices": ()})


@dataclass(frozen=True, slots=True)
class SimDialect:
    """One server's habits. Build it from `key=value` strings with `parse`; the first choice is the default.

    Errors and bodies
        not_found: an unknown database, folder, asset, channel or guid.
        errors: any other refusal: an HTTP status with text, or 200 with an error text or document.
        command_body: what a command, DELETE or PUT that worked answers with.
        absent_item: DELETESEGMENT and DELETEMARKER of what is not there: error or silence.
        beyond_end: a segment or marker beyond the last frame: refused or taken.
    Addresses
        plus: whether `+` in a query is a plus or a space.
        ns_id, title_address: whether a colon makes `NS:ID`; with `ns` even one that was percent-encoded.
        title_case: titles are found letter by letter, or without regard to case (the wrong clip!).
        title_taken: SETFIELD clip_name with the title of another clip.
    XMP
        xmp_shape, xmp_without_field: the body of GETUSERFIELDS, with and without `field`.
        list_separator: cuts the value of a SETUSERFIELDS parameter into a list.
    Clip XML
        link_fields: whether type, comment, layer, icon_pos and user_0..7 show as Attr.
        link_folder: the folder attribute of a link's answer: the clip's home, or the link's own.
        folder_path: `Raw/2026` or `/Raw/2026`.
        segment_keywords, segment_title: whether keywords show; whether a title is a child, the seg_name or both.
        finalized_word: how booleans are written.
        position_origin: whether positions count from the first frame of the file or from the IN point.
        extra: sprinkle unknown elements and attributes.
    Commands
        segment_update: CREATESEGMENT on a number that exists. segment_overlap: on frames that are taken.
        segmentation: CREATESEGMENTATION replaces or adds; segmentation_title: same title, or numbered.
        marker_update: CREATEMARKER on a uid that exists clears or keeps what is not sent.
        unknown_uid: CREATEMARKER with a uid that does not exist.
        folder_missing, link_twice, link_title: COPYLINK into no folder; of a title already there (a twin, the
        same one, refused); whether its title undergoes the backslash rule.
        link_delete: DELETE by a link's own title: that link only, the whole clip, refused.
    RSS
        rss_update: PUT of a file that exists. rss_delete: DELETE of a guid that several items have takes all of
        them, or the first one. rss_guid: where a guid comes from. rss_shape: the channel's XML.
        rss_body: bodies by file ending, always text, or item documents only.
    Listings
        mimetypes: one filter or many. datetime_filter. listing_depth. listing_paths: see `listings.py`.
    XML
        xml_wrapper (`xml`: all in an `<xml>`; `stray_end`: a stray `</xml>` at the end), xml_encoding, xml_newline,
        xml_namespace, xml_declaration.
    Files
        ranges: whether a part of a proxy or thumbnail may be asked for, and what its `If-Range` is held against: an
        ETag, a date, a weak ETag (which holds for no part). `ignore`: an ETag, and always the whole; `no`: neither.
    Limits
        line_limit: the longest request target in bytes, above it a 414; 0: no limit.
    Authentication
        auth, with auth_user and auth_password, auth_token, auth_header (the name; its value is auth_token).
    """

    not_found: str = _switch("404_text", "404_empty", "200_text", "200_xml", "500_text")
    errors: str = _switch("status", "200_text", "200_xml")
    command_body: str = _switch("empty", "ok_text", "ok_xml", "clip", "garbage")
    absent_item: str = _switch("refuse", "ignore")
    beyond_end: str = _switch("refuse", "allow")
    plus: str = _switch("plus", "space")
    ns_id: str = _switch("yes", "no")
    title_address: str = _switch("plain", "ns")
    title_case: str = _switch("exact", "folded")
    title_taken: str = _switch("refuse", "allow")
    xmp_shape: str = _switch("attr", "element", "nested", "lines", "unreadable")
    xmp_without_field: str = _switch("all", "error", "empty")
    list_separator: str = _text(",")
    link_fields: str = _switch("reported", "reported_when_set", "hidden")
    link_folder: str = _switch("home", "own")
    folder_path: str = _switch("plain", "rooted")
    segment_keywords: str = _switch("reported", "hidden")
    segment_title: str = _switch("child", "seg_name", "both")
    finalized_word: str = _switch("true/false", "1/0", "True/False")
    position_origin: str = _switch("file", "in")
    extra: str = _switch("no", "yes")
    segment_update: str = _switch("refuse", "overwrite", "duplicate", "ignore")
    segment_overlap: str = _switch("allow", "refuse")
    segmentation: str = _switch("replace", "add")
    segmentation_title: str = _switch("same", "numbered")
    marker_update: str = _switch("clear", "keep")
    unknown_uid: str = _switch("create", "ignore", "refuse")
    folder_missing: str = _switch("refuse", "create")
    link_twice: str = _switch("twin", "same", "refuse")
    link_title: str = _switch("plain", "escaped")
    link_delete: str = _switch("by_title", "clip", "refuse")
    rss_update: str = _switch("replace", "duplicate", "refuse")
    rss_delete: str = _switch("all", "first")
    rss_guid: str = _switch("item", "file", "stem")
    rss_shape: str = _switch("rss", "atom", "rss_namespaced", "bare")
    rss_body: str = _switch("any", "text", "item")
    mimetypes: str = _switch("one", "many")
    datetime_filter: str = _switch("after", "ignored")
    listing_depth: str = _switch("deep", "shallow")
    listing_paths: str = _switch("relative", "named", "absolute")
    xml_wrapper: str = _switch("none", "xml", "stray_end")
    xml_encoding: str = _switch("utf-8", "windows-1251", "koi8-r", "utf-16")
    xml_newline: str = _switch("lf", "crlf")
    xml_namespace: str = _switch("none", "default")
    xml_declaration: str = _switch("yes", "no")
    ranges: str = _switch("yes", "date", "weak", "ignore", "no")
    line_limit: str = _text("0")
    auth: str = _switch("none", "basic", "bearer", "header")
    auth_user: str = _text("ops")
    auth_password: str = _text("secret")
    auth_token: str = _text("secret")
    auth_header: str = _text("X-Auth-Token")

    def __post_init__(self) -> None:
        for key, choices in self.choices().items():
            if choices and getattr(self, key) not in choices:
                raise ValueError(f"{key} is one of {', '.join(choices)}, not {getattr(self, key)!r}")
        if not self.line_limit.isdecimal():
            raise ValueError(f"line_limit is a number of bytes, not {self.line_limit!r}")
        if not self.list_separator:
            raise ValueError("list_separator is empty")

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """Every key with its values, the default first; an empty tuple means free text."""
        return {entry.name: entry.metadata["choices"] for entry in fields(cls)}

    @classmethod
    def parse(cls, pairs: Iterable[str]) -> SimDialect:
        """`["segment_update=overwrite", "auth=basic"]` → SimDialect; ValueError names the choices."""
        return cls().with_pairs(pairs)

    def with_pairs(self, pairs: Iterable[str]) -> SimDialect:
        """The same dialect with some `key=value` strings changed."""
        return self.with_values(dict(_pair(text) for text in pairs))

    def with_values(self, values: Mapping[str, str]) -> SimDialect:
        """The same dialect with some keys changed; ValueError for an unknown key or value."""
        known = self.choices()
        for key in values:
            if key not in known:
                raise ValueError(f"unknown dialect key {key!r}; known: {', '.join(known)}")
        return replace(self, **cast("dict[str, Any]", dict(values)))

    def as_dict(self) -> dict[str, str]:
        """All keys with their values."""
        return asdict(self)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"a dialect switch is key=value, not {text!r}")
    return key.strip(), value
