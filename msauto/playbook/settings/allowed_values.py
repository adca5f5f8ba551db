"""What settings allow, for those who do not read the file: its models are imported only with it."""

from __future__ import annotations

from typing import Literal

MOST_FORKS = 512
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
