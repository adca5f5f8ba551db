"""Timelines of other programs: EDL, OTIO, marker lists, cue sheets and captions, read and written offline."""
