"""Each call of the interface as bytes."""

from __future__ import annotations

import pytest

from msauto.errors import AddressError
from msauto.model import requests
from msauto.model.plan import Body, Request

A = "/storage/NEWS@x"
BODY = Body.of(b"<a/>", "text/xml")
CALLS = [
    (requests.set_field(A, "comment", "Ready"), "POST", f"{A}?command=SETFIELD&name=comment&val=Ready"),
    (requests.set_field(A, "user_0", ""), "POST", f"{A}?command=SETFIELD&name=user_0&val="),
    (
        requests.set_user_fields(A, {"dc:subject": ["news", "a b"], "x": []}),
        "POST",
        f"{A}?command=SETUSERFIELDS&dc%3Asubject=news%2Ca%20b&x=",
    ),
    (requests.set_user_fields(A, {"x": ["a", "b"]}, ";"), "POST", f"{A}?command=SETUSERFIELDS&x=a%3Bb"),
    (requests.create_segment(A, 1, 0, 250), "POST", f"{A}?command=CREATESEGMENT&seg_num=1&start_frame=0&duration=250"),
    (
        requests.create_segment(A, 2, "00:00:01:00", 5, {"title": "T & t", "keywords": ""}),
        "POST",
        f"{A}?command=CREATESEGMENT&seg_num=2&start_frame=00%3A00%3A01%3A00&duration=5&title=T%20%26%20t&keywords=",
    ),
    (requests.delete_segment(A, 7), "POST", f"{A}?command=DELETESEGMENT&seg_num=7"),
    (requests.create_segmentation(A, 15000), "POST", f"{A}?command=CREATESEGMENTATION&duration=15000"),
    (
        requests.create_segmentation(A, 15000, "Part"),
        "POST",
        f"{A}?command=CREATESEGMENTATION&duration=15000&title=Part",
    ),
    (
        requests.create_marker(A, -1, 750, "Cue Point", {"title": "a", "user": "b"}),
        "POST",
        f"{A}?command=CREATEMARKER&uid=-1&frame=750&track=Cue%20Point&title=a&user=b",
    ),
    (requests.create_marker(A, 9), "POST", f"{A}?command=CREATEMARKER&uid=9"),
    (requests.delete_marker(A, 9), "POST", f"{A}?command=DELETEMARKER&uid=9"),
    (
        requests.copy_link(A, "a/b", ("Playout", "To/night")),
        "POST",
        f"{A}?command=COPYLINK&title=a%2Fb&folder=Playout%2FTo%5C%2Fnight",
    ),
    (requests.restore(A), "POST", f"{A}?command=RESTORE"),
    (requests.delete_asset(A), "DELETE", A),
    (requests.command(A, "PARTNER_X", [("ns", "title")]), "POST", f"{A}?command=PARTNER_X&ns=title"),
    (requests.load_xmp("MY DB", "TRAFFIC 1", BODY), "PUT", "/storage/MY%20DB?connector=TRAFFIC%201"),
    (requests.put_rss("ticker", "n-1.txt", BODY), "PUT", "/rss/ticker/n-1.txt"),
    (requests.delete_rss("ticker", "urn:x/1"), "DELETE", "/rss/ticker?guid=urn%3Ax%2F1"),
    (requests.get_databases(), "GET", "/storage"),
    (requests.get_listing("NEWS"), "GET", "/storage/NEWS"),
    (
        requests.get_listing("NEWS", ("Raw",), format="mam", datetime="2026-11-13T00:00:00", mimetype="Video"),
        "GET",
        "/storage/NEWS/Raw?format=mam&datetime=2026-11-13T00%3A00%3A00&mimetype=Video",
    ),
    (requests.get_asset(A), "GET", A),
    (requests.get_user_fields(A), "GET", f"{A}/GETUSERFIELDS"),
    (requests.get_user_fields(A, "dc:subject"), "GET", f"{A}/GETUSERFIELDS?field=dc%3Asubject"),
    (requests.get_proxy(A, "WP1"), "GET", f"{A}/WP1"),
    (requests.get_proxy(A, "WP8", preview=True), "GET", f"{A}/PVW/WP8"),
    (requests.get_thumbnail(A), "GET", f"{A}/GETICON"),
    (
        requests.get_thumbnail(A, pos=0, dur=5, w=320, h=180, params={"head:line": "Hi\nthere", "b": ""}),
        "GET",
        f"{A}/GETICON?pos=0&dur=5&w=320&h=180&param=head%3Aline:Hi%0athere&param=b:",
    ),
    (requests.get_thumbnail(A, params={"a": "1"}), "GET", f"{A}/GETICON?param=a:1"),
    (requests.get_channels(), "GET", "/rss"),
    (requests.get_channel("ticker"), "GET", "/rss/ticker"),
]


@pytest.mark.parametrize(("request_", "method", "path"), CALLS, ids=[call[2] for call in CALLS])
def test_call(request_: Request, method: str, path: str) -> None:
    assert (request_.method, request_.path) == (method, path)


def test_bodies() -> None:
    assert requests.put_rss("t", "f", BODY).body is BODY
    assert requests.load_xmp("N", "c", BODY).body is BODY


@pytest.mark.parametrize(
    "make",
    [
        lambda: requests.set_user_fields(A, {"command": ["x"]}),
        lambda: requests.create_marker(A, -1, 5, "General", {"track": "x"}),
        lambda: requests.create_marker(A, -1, fields={"uid": "x"}),
        lambda: requests.set_user_fields(A, {}),
        lambda: requests.get_proxy(A, "WP9"),
        lambda: requests.load_xmp("N", "", BODY),
        lambda: requests.delete_rss("t", ""),
    ],
)
def test_what_cannot_be_said(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AddressError):
        make()


def test_request_line_counts_what_is_sent() -> None:
    assert requests.request_line_length(requests.get_channels()) == len(b"GET /rss HTTP/1.1\r\n")
