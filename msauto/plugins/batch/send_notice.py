"""Send one notice with Apprise: stdin is a JSON object, stdout why it was not sent. A program of its own."""

from __future__ import annotations

import json
import logging
import sys


def main() -> int:
    """Return 0 if the notice was sent, otherwise 1."""
    message = json.load(sys.stdin)
    try:
        import apprise
    except ImportError:
        print("the package apprise is not installed: pip install apprise")  # noqa: T201
        return 1
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
    service = apprise.Apprise()
    if not service.add(message["url"]):
        print("the address is not a valid Apprise URL")  # noqa: T201
        return 1
    sent = service.notify(
        title=message["title"],
        body=message["body"],
        notify_type=message["kind"],
        body_format=apprise.NotifyFormat.TEXT,
    )
    return 0 if sent else 1


if __name__ == "__main__":
    sys.exit(main())
