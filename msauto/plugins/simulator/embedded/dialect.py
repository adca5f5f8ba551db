"""The dialect: how the simulated server answers where the interface is silent.

Each unknown is a switch with named values (interface, «What is not specified»). The first value is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast


def _switch(choices: str, description: str) -> str:
    values = tuple(choices.split())
    return field(default=values[0], metadata={"choices": values, "description": description})


def _text(default: str, description: str) -> str:
    return field(default=default, metadata={"choices": (), "description": description})


@dataclass(frozen=True, slots=True)
class SimDialect:
    """The dialect of one server: each field is a switch, described beside it. Build it with `parse`."""

    # Errors and bodies
    not_found: str = _switch(
        "404_text 404_empty 200_text 200_xml 500_text",
        "unknown database, folder, asset, channel or guid",
    )
    errors: str = _switch("status 200_text 200_xml", "any other refusal")
    command_body: str = _switch(
        "empty ok_text ok_xml clip garbage", "body after a successful command, DELETE or PUT"
    )
    # Addresses
    ns_id: str = _switch("yes no", "whether a literal colon separates NS:ID")
    title_address: str = _switch("plain ns", "ns: a percent-encoded colon also separates NS:ID")
    title_case: str = _switch(
        "exact normalized folded",
        "titles are found exactly, in any normalization, or without regard to case as well",
    )
    title_twins: str = _switch(
        "first both", "answer to a title that several clips have: the first clip, or all"
    )
    link_titles: str = _switch(
        "found nowhere clip other",
        "the title of a link finds it, nothing, its clip, or another clip",
    )
    # XMP
    xmp_shape: str = _switch("attr element nested lines unreadable", "body of GETUSERFIELDS")
    xmp_without_field: str = _switch("all error empty", "body of GETUSERFIELDS without field")
    xmp_update: str = _switch("keep clear", "XMP fields that SETUSERFIELDS does not send")
    list_separator: str = _text(",", "separator of the list in a SETUSERFIELDS parameter")
    # Clip XML
    unfinalized: str = _switch(
        "false recording growing off empty", "text of finalized while a clip is recorded"
    )
    orig_name: str = _switch("reported hidden", "the attribute orig_name")
    link_fields: str = _switch(
        "reported reported_when_set hidden", "whether the Attr elements contain the link fields"
    )
    link_folder: str = _switch(
        "home own", "folder attribute for a link: of the clip's home, or its own"
    )
    segment_keywords: str = _switch("reported hidden", "keywords of a segment")
    position_origin: str = _switch("file in", "position 0: first frame of the file, or IN point")
    # Commands
    segment_update: str = _switch(
        "refuse overwrite duplicate ignore", "CREATESEGMENT with a number that exists"
    )
    segment_overlap: str = _switch("allow refuse", "CREATESEGMENT on frames of another segment")
    segment_numbers: str = _switch(
        "fixed by_start", "by_start: a number follows the start after each write"
    )
    segment_delete: str = _switch(
        "all first last", "DELETESEGMENT with a number that several segments have"
    )
    marker_uid: str = _switch(
        "above lowest", "uid of a new marker: above all others, or the lowest free one"
    )
    marker_update: str = _switch("clear keep", "fields that CREATEMARKER does not send")
    folder_missing: str = _switch("refuse create", "COPYLINK into an unknown folder")
    link_delete: str = _switch(
        "by_title clip refuse", "DELETE by a link's title: the link, the clip, or an error"
    )
    # RSS
    rss_update: str = _switch("replace duplicate refuse", "PUT of a file that exists")
    rss_delete: str = _switch("all first", "DELETE of a guid that several items have")
    rss_guid: str = _switch(
        "item file stem", "origin of a guid: item, file name, or file name without ending"
    )
    rss_shape: str = _switch("rss atom rss_namespaced bare", "XML of a channel")
    rss_body: str = _switch(
        "any text item", "PUT body: by file ending, always text, or always an item document"
    )
    # Listings
    datetime_filter: str = _switch("after ignored", "effect of the datetime filter")
    listing_depth: str = _switch("deep shallow", "content of subfolders in a listing")
    # XML
    xml_wrapper: str = _switch(
        "none xml stray_end", "all inside <xml>, or a stray </xml> at the end"
    )
    xml_encoding: str = _switch("utf-8 windows-1251 koi8-r utf-16", "encoding of documents")
    xml_namespace: str = _switch("none default", "default namespace of the root")
    xml_layout: str = _switch("compact indented", "indented: each text on lines of its own")
    # Limits
    line_limit: str = _text("0", "longest request target in bytes, above it a 414; 0: unlimited")
    # Authentication
    auth: str = _switch(
        "none basic bearer header", "authentication; basic: of the user `ops`; header: X-Auth-Token"
    )
    auth_secret: str = _text("secret", "password, bearer token, or value of the header")

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, choices = getattr(self, entry.name), entry.metadata["choices"]
            if choices and value not in choices:
                description = entry.metadata["description"]
                raise ValueError(
                    f"{entry.name} ({description}) cannot be {value!r}; valid: {', '.join(choices)}"
                )
        if not self.line_limit.isdecimal():
            raise ValueError(f"line_limit is a number of bytes, not {self.line_limit!r}")
        if not self.list_separator:
            raise ValueError("list_separator is empty")

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """Return every key with its values, the default first; an empty tuple means free text."""
        return {entry.name: entry.metadata["choices"] for entry in fields(cls)}

    @classmethod
    def parse(cls, pairs: Iterable[str]) -> SimDialect:
        """`["segment_update=overwrite", "auth=basic"]` → SimDialect; ValueError names the valid choices."""
        values = {}
        for text in pairs:
            key, equals, value = text.partition("=")
            if not equals:
                raise ValueError(f"a dialect switch is key=value, not {text!r}")
            values[key.strip()] = value
        return cls().with_values(values)

    def with_values(self, values: Mapping[str, str]) -> SimDialect:
        """Return the dialect with some keys changed; ValueError for an unknown key or value."""
        choices = self.choices()
        for key in values:
            if key not in choices:
                raise ValueError(f"unknown dialect key {key!r}; known: {', '.join(choices)}")
        return replace(self, **cast("dict[str, Any]", dict(values)))
