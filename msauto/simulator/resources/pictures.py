"""Thumbnails: a real PNG in which one can read the title, the time code and the parameters."""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

# Pillow's own font lacks Cyrillic.
_FONTS = ("DejaVuSans.ttf", "Arial.ttf", "LiberationSans-Regular.ttf", "NotoSans-Regular.ttf", "Helvetica.ttc")


@dataclass(frozen=True, slots=True)
class ThumbnailCard:
    """What a picture says; it is also in the PNG's text chunks, for programs to read."""

    title: str
    time_code: str = ""
    lines: tuple[str, ...] = ()


def draw_png(card: ThumbnailCard, size: tuple[int, int]) -> bytes:
    """A PNG of this size in pixels."""
    info = PngInfo()
    info.add_itxt("Title", card.title)
    info.add_itxt("TimeCode", card.time_code)
    info.add_itxt("Params", "\n".join(card.lines))
    out = io.BytesIO()
    draw_card(card, size).save(out, "PNG", pnginfo=info, compress_level=1)
    return out.getvalue()


def draw_card(card: ThumbnailCard, size: tuple[int, int]) -> Image.Image:
    """The picture: a colour of the title's own, and the lines from top to bottom, each fitted to the width."""
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
    """The first font at hand that knows Cyrillic, else Pillow's own."""
    for name in _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
