"""What a plan leaves as it is, in short."""

from __future__ import annotations

from msauto.model.plan import ShownItem


def shown_segment(number: int, start: int, duration: int, title: str = "") -> ShownItem:
    return ShownItem(str(number), "Segments", start, duration, title)


def shown_marker(uid: int, frame: int, track: str, title: str = "") -> ShownItem:
    return ShownItem(f"uid {uid}", track, frame, 0, title)
