"""What a playbook may write of an RSS channel (interface, «RSS add data», «RSS delete data»)."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Literal

from msauto.aspects.arguments import duplicates, known_items
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode, UnrenderedTemplate
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Name, OneName, Opt, Text, Value
from msauto.errors import Problem
from msauto.model.requests import bad_character, default_file, file_key
from msauto.primitives.feed_times import parse_feed_time

_BOTH = ("the item has both {0} and {1}", "keep one of them")
_NO_CONTENT = ("the item has no content", "add text or item")
_ONE_NAME = "{key} and {other} cannot be used together with state: absent"
_EMPTY = "add items: [] to empty the channel"


class RssBody(Model):
    """An RSS item as a document."""

    title: Opt[Text] = key("title")
    description: Opt[Text] = key("description")
    link: Opt[Text] = key("link")
    pub_date: Opt[Text] = key("publication date: ISO 8601 or RFC 822", alias="pubDate")


class RssItemArgs(Model):
    """One item of a channel."""

    rules: ClassVar = (
        rule.when_value(
            "state", "present", rule.one_of(("text", "item"), _BOTH, _NO_CONTENT), default=True
        ),
        rule.absent_has_none(("text", "item")),
        rule.any_of(
            (("guid",), ("file",)),
            "the item has no guid",
            "add guid; or file, by whose name it is found",
        ),
        rule.when_value(
            "state", "absent", rule.excludes("guid", ("file",), _ONE_NAME, "keep one of them")
        ),
    )

    guid: Opt[Name] = key(
        "identifier of the item in the channel; an item without one is found by its file"
    )
    file: Opt[Name] = key(
        "file name of the item; default: the guid, made a safe file name, with .txt or .xml"
    )
    text: Opt[Text] = key("text of the item, for a .txt file")
    item: Opt[RssBody] = key("fields of the item, for an .xml file")
    state: Opt[Literal["present", "absent"]] = key(
        "present (default) or absent: the item is removed"
    )


class RssArgs(Model):
    """The desired state of an RSS channel."""

    shorthand: ClassVar = "channel"

    rules: ClassVar = (
        rule.when_value(
            "exactly", True, rule.needs("exactly", ("items",), "exactly requires items", _EMPTY)
        ),
    )

    channel: Value[OneName] = need("name of the channel")
    items: Opt[list[Value[RssItemArgs]]] = key("items of the channel")
    exactly: Opt[bool] = key("remove other items")


# Checks of validated arguments. Templates that are not rendered yet are skipped ----------------------------------

_ONE_LINE: Final = frozenset({"guid", "file"})
"""The texts of an RSS item that cannot hold a line end."""


def check_items(args: RssArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the items of a channel."""
    here = node.child("items")
    items = known_items(args.items, RssItemArgs)
    for index, item in items:
        yield from _characters(item, here.child(index))
        yield from _file(item, here.child(index))
        yield from _empty_headline(index, item, here.child(index))
        yield from _date(item, here.child(index))
    yield from duplicates(items, here, lambda item: item.guid, "guid", "guid")
    yield from _shared_files(items, here)


def _shared_files(items: list[tuple[int, RssItemArgs]], node: SourceNode) -> Iterator[Problem]:
    """Yield a problem for each item in the file of another: the later PUT would replace the earlier item."""
    users: dict[str, tuple[int, RssItemArgs]] = {}
    for index, item in items:
        if item.state == "absent":
            continue
        if isinstance(item.guid, UnrenderedTemplate) or isinstance(item.file, UnrenderedTemplate):
            continue
        file = file_name(item)
        first, other = users.setdefault(file_key(file), (index, item))
        is_same = first == index or (item.guid is not None and other.guid == item.guid)
        if is_same:  # two items of one guid are reported as such
            continue
        name = item.guid or item.file
        other_name = other.guid or other.file
        line = node.child(first).place.line
        where = "file" if item.file is not None else "guid"
        why = f"item {name!r} uses the file {file} of item {other_name!r} (line {line})"
        yield node.child(index, where).problem(why, "give each item its own `file:`")


def _characters(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield a problem for each character that no channel shows as it is sent: it would be sent again in every run."""
    body: Any = item.item
    texts: dict[tuple[str, ...], Any] = {
        ("guid",): item.guid,
        ("file",): item.file,
        ("text",): item.text,
    }
    if isinstance(body, RssBody):
        for name, text in body_texts(body).items():
            texts["item", name] = text
    for path, text in texts.items():
        if not isinstance(text, str) or isinstance(text, UnrenderedTemplate):
            continue
        name = path[-1]
        bad = bad_character(text, line=name in _ONE_LINE)
        if bad is None:
            if name in _ONE_LINE and text != text.strip():
                why = f"the {name} has blanks at an end, which no RSS channel reports"
                yield node.child(*path).problem(why, "remove them")
            continue
        position, character = bad
        why = (
            f"the {name} contains {character} as character {position}, which no RSS channel reports"
        )
        yield node.child(*path).problem(
            why, "remove it in the source, or with the filter `regex_replace`"
        )


def _file(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    if item.file is None or isinstance(item.file, UnrenderedTemplate):
        return
    if "/" in item.file or "\\" in item.file:
        yield node.child("file").problem("file must be a name, not a path", "remove the folder")
    if item.file in {".", ".."}:
        why = f"{item.file!r} is a folder, not a file name"
        yield node.child("file").problem(why, "use a file name such as n-1.txt")


def _date(item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    date = item.item.pub_date if isinstance(item.item, RssBody) else None
    if not date or isinstance(date, UnrenderedTemplate) or parse_feed_time(date) is not None:
        return
    yield node.child("item", "pubDate").problem(
        f"{date[:40]!r} is not a date and time of a feed",
        "write it as 2026-11-20T21:00:00+01:00, or as Fri, 20 Nov 2026 21:00:00 +0100",
    )


def _empty_headline(index: int, item: RssItemArgs, node: SourceNode) -> Iterator[Problem]:
    """Yield a problem for an item without a visible text, such as one of an empty cell of a table."""
    name = item.guid or item.file
    body = item.item
    if isinstance(name, UnrenderedTemplate):
        return  # the message names the item of a row; it is checked once that is known
    why = ""
    if item.text is not None and not item.text.strip():
        why = f"the text of item {index + 1}, {name!r}, is empty"
    elif isinstance(body, RssBody):
        named = [text for text in (body.title, body.description) if text is not None]
        if named and not any(text.strip() for text in named):
            why = f"item {index + 1}, {name!r}, has neither a title nor a description"
    if why:
        where = "item" if item.text is None else "text"
        yield node.child(where).problem(
            f"{why}: the headline would be empty", "write the text, or state: absent"
        )


def file_name(args: RssItemArgs) -> str:
    """Return the name of the file in which an item is put."""
    return args.file or default_file(args.guid or "", text=args.item is None)


def body_texts(body: RssBody) -> dict[str, str]:
    """Return the texts of an item's document by their names in RSS."""
    named = {
        "title": body.title,
        "description": body.description,
        "link": body.link,
        "pubDate": body.pub_date,
    }
    return {name: value for name, value in named.items() if value is not None}
