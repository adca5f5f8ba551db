"""The escaping, against examples worked out by hand."""

from __future__ import annotations

import pytest

from msauto.errors import AddressError, MsautoError
from msauto.model import requests
from msauto.model.plan import Address
from msauto.model.server import Dialect, ServerSpec
from msauto.server.transport import ExactTransport
from tests.tables import table


@table("addresses/titles", "title", "expected")
def test_title(title: str, expected: str) -> None:
    assert requests.asset_path("NEWS", Address(title)) == f"/storage/NEWS@{expected}"


@table("addresses/key_ids", "name", "namespace", "expected")
def test_key_id(name: str, namespace: str, expected: str) -> None:
    assert requests.asset_path("NEWS", Address(name, namespace)) == f"/storage/NEWS@{expected}"


def test_title_may_be_addressed_as_key_id() -> None:
    spec = ServerSpec("studio", "http://studio", dialect=Dialect(title_address="ns"))

    def path(address: Address) -> str:
        return requests.asset_path("NEWS", requests.wire_address(spec, address))

    assert path(Address("Some:Thing")) == "/storage/NEWS@title:Some%3AThing"
    assert path(Address("Some Thing")) == "/storage/NEWS@Some%20Thing"
    assert path(Address("1", "handle")) == "/storage/NEWS@handle:1"


@table("addresses/folders", "folder", "expected")
def test_folder(folder: tuple[str, ...], expected: str) -> None:
    assert requests.folder_path("MY DB", folder) == expected


def test_channel_and_file() -> None:
    assert requests.channel_path("my/ticker") == "/rss/my%2Fticker"
    assert requests.rss_item_path("ticker", "n 1.txt") == "/rss/ticker/n%201.txt"
    assert requests.rss_item_path("..", "..") == "/rss/%2E%2E/%2E%2E"


def test_query_has_no_backslash_rule() -> None:
    pairs = [("val", "a/b\\c&d=e+f,g\nü"), ("dc:subject", "")]
    assert requests.query(pairs) == "?val=a%2Fb%5Cc%26d%3De%2Bf%2Cg%0a%C3%BC&dc%3Asubject="
    assert requests.query([]) == ""


def test_values_of_copylink() -> None:
    assert requests.folder_value(("Playout", "To/night", "a\\b")) == "Playout/To\\/night/a\\\\b"


@pytest.mark.parametrize(
    "make",
    [
        lambda: requests.asset_path("NEWS", Address("")),
        lambda: requests.asset_path("", Address("x")),
        lambda: requests.folder_path(""),
        lambda: requests.folder_path("NEWS", ("a", "")),
        lambda: requests.folder_value(("a", "")),
        lambda: requests.channel_path(""),
        lambda: requests.rss_item_path("ticker", ""),
        lambda: requests.query([("", "x")]),
        lambda: requests.named("", "a link's title"),
        lambda: requests.asset_path("NEWS", Address("a\ud800b")),
        lambda: requests.query([("val", "\udfff")]),
    ],
)
def test_names_that_no_address_can_hold(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AddressError) as caught:
        make()
    assert isinstance(caught.value, MsautoError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.remedy
    str(caught.value).encode()  # can be printed


def test_no_server_is_told_the_zone_of_its_address() -> None:
    """It is the name of an interface of this machine."""
    assert ExactTransport("http://[fe80::1%eth0]:7901")._host == [("Host", "[fe80::1]:7901")]
    assert ExactTransport("http://studio-a:7901")._host == []
