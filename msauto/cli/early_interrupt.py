"""Ctrl-C while Python imports: nothing is begun, so the process leaves at once, with one line and 130.

No exception does that for certain: one that is raised while a module is imported may come as another (``RuntimeError``
where an enum is being made, up to Python 3.11), or be swallowed (in what is called when an object goes).
"""

import os
import signal
from importlib import import_module
from types import FrameType, ModuleType

INTERRUPTED = 130


def load(name: str) -> ModuleType:
    """Import a module, and leave where SIGINT comes meanwhile, unless somebody else answers it, or it is ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return import_module(name)
    try:
        signal.signal(signal.SIGINT, _leave)
    except ValueError:  # Python lets the main thread alone set handlers
        return import_module(name)
    try:
        return import_module(name)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, b"Interrupted.\n")
    finally:  # also where stderr is closed
        os._exit(INTERRUPTED)
