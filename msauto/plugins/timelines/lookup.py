"""``lookup('timeline', …)``: the markers and segments of a file of another program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msauto.documents.text_files import TextFileError
from msauto.errors import nearest
from msauto.model.timecode import TimecodeError, parse_rate
from msauto.playbook.input_files import LookupContext
from msauto.playbook.templates.names import TemplateFunctionError
from msauto.plugins.timelines.formats import read_timeline
from msauto.plugins.timelines.timeline import TimelineClock, TimelineError, joined, parse_origin


def lookup_timeline(
    context: LookupContext,
    name: str,
    rate: Any = None,
    origin: str | int = "",
    tracks: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "",
) -> dict[str, list[dict[str, Any]]]:
    """The markers and segments of a timeline: EDL, OTIO, WebVTT, SRT, CSV, XLSX, or a marker list of Avid.

    Positions are frames. Colours become tracks; tracks={'red': 'Cue Point'} sets them.

    Example: lookup('timeline', 'cuts.edl', rate=25, origin='10:00:00:00').markers
    """
    content = context.read(name)
    try:
        if rate is None:
            raise TimelineError("the frame rate is missing", "add rate=asset.rate")
        exact_rate = parse_rate(rate)
        first = parse_origin(origin) if str(origin) else None
        clock = TimelineClock(exact_rate, first)
        timeline = read_timeline(
            content, name, clock, tracks=tracks, columns=columns, encoding=str(encoding)
        )
        timeline.check_understood()
    except TimecodeError as error:
        raise TemplateFunctionError(f"{name}: {error}", error.remedy) from error
    except TextFileError as error:
        place = f"{name}:{error.line}" if error.line else name
        raise TemplateFunctionError(
            f"{place}: {error}", error.remedy or nearest(*error.unknown)
        ) from error
    return {
        "markers": [marker.as_item() for marker in joined(timeline.markers)],
        "segments": [segment.as_item() for segment in joined(timeline.segments)],
    }
