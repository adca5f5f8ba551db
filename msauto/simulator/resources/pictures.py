"""Thumbnails (PNG) and web proxies (MP4) that show the title, the time code and the parameters."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import av
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

_PROXY_SECONDS = 2
_CODECS = ("libx264", "mpeg4")
# Pillow's own font lacks Cyrillic.
_FONTS = ("DejaVuSans.ttf", "Arial.ttf", "LiberationSans-Regular.ttf", "NotoSans-Regular.ttf", "Helvetica.ttc")


@dataclass(frozen=True, slots=True)
class ThumbnailCard:
    """The texts of a picture; the text chunks of the PNG contain them too."""

    title: str
    time_code: str = ""
    lines: tuple[str, ...] = ()


def draw_png(card: ThumbnailCard, size: tuple[int, int]) -> bytes:
    """Return a PNG of this size in pixels."""
    info = PngInfo()
    info.add_itxt("Title", card.title)
    info.add_itxt("TimeCode", card.time_code)
    info.add_itxt("Params", "\n".join(card.lines))
    out = io.BytesIO()
    draw_card(card, size).save(out, "PNG", pnginfo=info, compress_level=1)
    return out.getvalue()


def draw_card(card: ThumbnailCard, size: tuple[int, int]) -> Image.Image:
    """Draw the lines from top to bottom, each fitted to the width, on a color that depends on the title."""
    hue = zlib.crc32(card.title.encode()) % 360
    image = Image.new("RGB", size, f"hsl({hue}, 45%, 25%)")
    draw = ImageDraw.Draw(image)
    lines = [line for text in (card.title, card.time_code, *card.lines) for line in text.splitlines() if line]
    height = size[1] / (len(lines) + 1)
    for row, line in enumerate(lines):
        font = _fitting(line, min(height * 0.7, size[1] / 8), size[0] * 0.94)
        draw.text((size[0] * 0.03, height * (row + 0.5)), line, fill="white", font=font)
    return image


def _fitting(line: str, height: float, width: float) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    size = max(6, int(height))
    length = font_of(size).getlength(line)
    return font_of(size if length <= width else max(6, int(size * width / length)))


@lru_cache(maxsize=128)
def font_of(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """Return the first installed font with Cyrillic, else Pillow's own."""
    for name in _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def make_proxy(title: str, rate: Fraction, frames: int, size: tuple[int, int]) -> bytes:
    """Return at most two seconds of the clip as MP4, at its own rate, in H.264 if the encoder is available."""
    out = io.BytesIO()
    count = max(1, min(frames, int(_PROXY_SECONDS * rate)))
    codec = next(name for name in _CODECS if name in av.codecs_available)
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream(codec, rate=rate, options={"preset": "ultrafast", "threads": "1"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for frame in _frames(title, count, size):
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out.getvalue()


def _frames(title: str, count: int, size: tuple[int, int]) -> Iterator[av.VideoFrame]:
    card = draw_card(ThumbnailCard(title), size)
    for number in range(count):
        image = card.copy()
        width = size[0] * (number + 1) // count
        ImageDraw.Draw(image).rectangle((0, size[1] - 8, width, size[1]), fill="white")
        yield av.VideoFrame.from_image(image)  # type: ignore[no-untyped-call]
