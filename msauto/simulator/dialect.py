"""The dialect: how the simulated server answers where the interface does not say it.

Each unknown of the interface ("not shown") is a switch with named values. The first value is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast


def _switch(description: str, *choices: str) -> str:
    return field(default=choices[0], metadata={"description": description, "choices": choices})


def _text(description: str, default: str) -> str:
    return field(default=default, metadata={"description": description, "choices": ()})


@dataclass(frozen=True, slots=True)
class SimDialect:
    """The dialect of one server: each field is a switch, described beside it. Build it with `parse`."""

    # Errors and bodies
    not_found: str = _switch(
        "the answer for an unknown database, folder, asset, channel or guid",
        "404_text",
        "404_empty",
        "200_text",
        "200_xml",
        "500_text",
    )
    errors: str = _switch(
        "the answer for any other refusal: a status with a text, or 200 with an error", "status", "200_text", "200_xml"
    )
    command_body: str = _switch(
        "the body after a command, DELETE or PUT that succeeded", "empty", "ok_text", "ok_xml", "clip", "garbage"
    )
    absent_item: str = _switch("DELETESEGMENT and DELETEMARKER of an unknown item", "refuse", "ignore")
    beyond_end: str = _switch("a segment or marker beyond the last frame", "refuse", "allow")
    # Addresses
    plus: str = _switch("the meaning of + in a query", "plus", "space")
    ns_id: str = _switch("whether a literal colon separates NS:ID", "yes", "no")
    title_address: str = _switch("ns: a percent-encoded colon also separates NS:ID", "plain", "ns")
    title_case: str = _switch(
        "how a title is found; folded ignores case and can find the wrong clip", "exact", "folded"
    )
    title_taken: str = _switch("SETFIELD clip_name with the title of another clip", "refuse", "allow")
    # XMP
    xmp_shape: str = _switch("the body of GETUSERFIELDS", "attr", "element", "nested", "lines", "unreadable")
    xmp_without_field: str = _switch("the body of GETUSERFIELDS without `field`", "all", "error", "empty")
    list_separator: str = _text("splits the value of a SETUSERFIELDS parameter into a list", ",")
    # Clip XML
    link_fields: str = _switch(
        "whether type, comment, layer, icon_pos and user_0 to user_7 are in an Attr",
        "reported",
        "reported_when_set",
        "hidden",
    )
    link_folder: str = _switch("the folder attribute for a link: of the clip's home, or its own", "home", "own")
    folder_path: str = _switch("`Raw/2026` or `/Raw/2026`", "plain", "rooted")
    segment_keywords: str = _switch("whether a segment shows its keywords", "reported", "hidden")
    segment_title: str = _switch(
        "whether a segment's title is a child element, the seg_name, or both", "child", "seg_name", "both"
    )
    finalized_word: str = _switch("how booleans are written", "true/false", "1/0", "True/False")
    position_origin: str = _switch("position 0: the first frame of the file, or the IN point", "file", "in")
    extra: str = _switch("whether answers contain unknown elements and attributes", "no", "yes")
    # Commands
    segment_update: str = _switch(
        "CREATESEGMENT with a number that exists", "refuse", "overwrite", "duplicate", "ignore"
    )
    segment_overlap: str = _switch("CREATESEGMENT on frames of another segment", "allow", "refuse")
    segmentation: str = _switch("whether CREATESEGMENTATION replaces segments or adds to them", "replace", "add")
    segmentation_title: str = _switch("the titles that CREATESEGMENTATION gives", "same", "numbered")
    marker_update: str = _switch("what CREATEMARKER does with the fields that are not sent", "clear", "keep")
    unknown_uid: str = _switch("CREATEMARKER with an unknown uid", "create", "ignore", "refuse")
    folder_missing: str = _switch("COPYLINK into an unknown folder", "refuse", "create")
    link_twice: str = _switch("COPYLINK to a title that is already in the folder", "twin", "same", "refuse")
    link_title: str = _switch("whether the backslash rule applies to the title of COPYLINK", "plain", "escaped")
    link_delete: str = _switch(
        "DELETE by a link's title: the link, the whole clip, or an error", "by_title", "clip", "refuse"
    )
    # RSS
    rss_update: str = _switch("PUT of a file that exists", "replace", "duplicate", "refuse")
    rss_delete: str = _switch("DELETE of a guid that several items have: all of them, or the first", "all", "first")
    rss_guid: str = _switch(
        "the origin of a guid: the item, the file name, the file name without ending", "item", "file", "stem"
    )
    rss_shape: str = _switch("the XML of a channel", "rss", "atom", "rss_namespaced", "bare")
    rss_body: str = _switch(
        "a PUT body: by the file ending, always text, or always an item document", "any", "text", "item"
    )
    # Listings
    mimetypes: str = _switch("the number of mimetype filters", "one", "many")
    datetime_filter: str = _switch("whether the datetime filter has an effect", "after", "ignored")
    listing_depth: str = _switch("whether a listing has the content of subfolders", "deep", "shallow")
    listing_paths: str = _switch("the top Folder of a listing, see `listings.py`", "relative", "named", "absolute")
    # XML
    xml_wrapper: str = _switch("all inside `<xml>`, or a stray `</xml>` at the end", "none", "xml", "stray_end")
    xml_encoding: str = _switch("the encoding of documents", "utf-8", "windows-1251", "koi8-r", "utf-16")
    xml_newline: str = _switch("the line ends of documents", "lf", "crlf")
    xml_namespace: str = _switch("whether the root has a default namespace", "none", "default")
    xml_declaration: str = _switch("whether a document has an XML declaration", "yes", "no")
    # Files and limits
    ranges: str = _switch(
        "partial downloads; the validator is an ETag, a date or a weak ETag (no partial download); ignore: ETag only",
        "yes",
        "date",
        "weak",
        "ignore",
        "no",
    )
    line_limit: str = _text("the longest request target in bytes, longer ones get a 414; 0: unlimited", "0")
    # Authentication
    auth: str = _switch(
        "how a client authenticates; header: auth_header contains auth_token", "none", "basic", "bearer", "header"
    )
    auth_user: str = _text("the user of basic authentication", "ops")
    auth_password: str = _text("the password of basic authentication", "secret")
    auth_token: str = _text("the bearer token, or the value of auth_header", "secret")
    auth_header: str = _text("the name of the header", "X-Auth-Token")

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, choices = getattr(self, entry.name), entry.metadata["choices"]
            if choices and value not in choices:
                description = entry.metadata["description"]
                raise ValueError(f"{entry.name} ({description}) cannot be {value!r}; valid: {', '.join(choices)}")
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
        return cls().with_values(dict(_pair(text) for text in pairs))

    def with_values(self, values: Mapping[str, str]) -> SimDialect:
        """Return the dialect with some keys changed; ValueError for an unknown key or value."""
        known = self.choices()
        for key in values:
            if key not in known:
                raise ValueError(f"unknown dialect key {key!r}; known: {', '.join(known)}")
        return replace(self, **cast("dict[str, Any]", dict(values)))

    def as_dict(self) -> dict[str, str]:
        """Return all keys with their values."""
        return asdict(self)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"a dialect switch is key=value, not {text!r}")
    return key.strip(), value
