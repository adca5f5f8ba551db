"""Parcels show their size only, shared values travel once, and what is missing is sent."""

from __future__ import annotations

from msauto.errors import InputError, MsautoError, Problem, RejectedError, SourceLocation, UnreachableError
from msauto.running.parcels import Parcel, Shared, SharedValues, pack, unpack


def test_a_parcel_shows_its_size_only() -> None:
    parcel, _ = pack({"password": "canary-7"})
    assert "canary" not in repr(parcel) + str(parcel)
    assert repr(parcel) == f"Parcel({len(parcel.data)} bytes)"


def test_a_shared_value_is_not_in_the_parcels_that_refer_to_it() -> None:
    known, shared = SharedValues(), Shared(["a long listing"] * 3)
    parcel, used = pack([shared, shared], known=known)
    assert b"listing" not in parcel.data
    (number,) = used
    inner, _ = pack(known[number].value, known=known)
    one, two = unpack(parcel, {number: inner})
    assert one is two
    assert one.value == shared.value
    assert unpack(parcel, {number: inner})[0].value is one.value, "it is unpickled once in each process"


def test_errors_come_back_as_they_were() -> None:
    problem = Problem("bad", SourceLocation("a.yml", 1, 2), "mend it")
    unreachable = UnreachableError("refused", server="studio", remedy="start it")
    unreachable.url = "http://studio"
    rejected = RejectedError("no", status=503, retry_after=2.0, server="studio", request="GET /")
    for error in (MsautoError("x", remedy="y"), InputError([problem]), unreachable, rejected):
        again = unpack(pack(error)[0])
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_parcel_can_be_pickled_as_it_is() -> None:
    parcel = Parcel(b"123")
    assert unpack(pack(parcel)[0]).data == b"123"
