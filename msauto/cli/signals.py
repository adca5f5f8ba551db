"""Who answers SIGINT; apart from what needs an event loop, for ``msauto --help`` needs none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def handler_given_back(instead: signal.Handlers | None = None) -> Iterator[None]:
    """Give SIGINT its handler back at the end; ``instead``: another one, for a process that ends with what is inside.

    (A Ctrl-C while Python shuts down would otherwise replace an exit code that is settled.)
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if may_handle():
            signal.signal(signal.SIGINT, instead or before)


def may_handle() -> bool:
    """Python lets the main thread alone set handlers."""
    return threading.current_thread() is threading.main_thread()
