"""Web proxies: a real MP4, a few seconds long, that shows the title and a bar that moves."""

from __future__ import annotations

import io
from fractions import Fraction

import av
from PIL import ImageDraw

from msauto.simulator.resources.pictures import ThumbnailCard, draw_card

_SECONDS = 2
_CODECS = ("libx264", "mpeg4")


def make_film(title: str, rate: Fraction, frames: int, size: tuple[int, int]) -> bytes:
    """At most two seconds of the clip, at its own rate, in h264 where that encoder is there."""
    out = io.BytesIO()
    count = max(1, min(frames, int(_SECONDS * rate)))
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream(_codec(), rate=rate, options={"preset": "ultrafast", "threads": "1"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for picture in _pictures(title, count, size):
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return out.getvalue()


def _pictures(title: str, count: int, size: tuple[int, int]) -> list[av.VideoFrame]:
    card = draw_card(ThumbnailCard(title), size)
    frames = []
    for number in range(count):
        image = card.copy()
        width = size[0] * (number + 1) // count
        ImageDraw.Draw(image).rectangle((0, size[1] - 8, width, size[1]), fill="white")
        frames.append(av.VideoFrame.from_image(image))  # type: ignore[no-untyped-call]
    return frames


def _codec() -> str:
    return next(name for name in _CODECS if name in av.codecs_available)
