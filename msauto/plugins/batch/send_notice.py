"""Send one notice, by SMTP or Apprise: stdin is a JSON object, stdout why it was not sent. A program of its own."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
import sys
from email.message import EmailMessage
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

_SECONDS: Final = 30


def main() -> int:
    """Return 0 if the notice was sent, otherwise 1."""
    message = json.load(sys.stdin)
    if urlsplit(message["url"]).scheme in {"smtp", "smtps"}:
        return _mail(message)
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


def _mail(message: dict[str, Any]) -> int:
    """Send a mail to ``smtp://USER:PASSWORD@HOST:PORT?from=A&to=B``; a password is only sent over TLS."""
    try:
        _send_mail(message)
    except (OSError, ValueError, KeyError, smtplib.SMTPException) as error:
        print(f"the mail was not sent: {' '.join(str(error).split())}")  # noqa: T201
        return 1
    return 0


def _send_mail(message: dict[str, Any]) -> None:
    url = urlsplit(message["url"])
    named = parse_qs(url.query)
    mail = EmailMessage()
    mail["Subject"], mail["From"] = message["title"], named["from"][0]
    mail["To"] = ", ".join(named["to"])
    mail.set_content(message["body"])
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if url.scheme == "smtps":
        server = smtplib.SMTP_SSL(
            url.hostname or "", url.port or 465, timeout=_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(url.hostname or "", url.port or 587, timeout=_SECONDS)
    with server:
        server.ehlo()
        if url.scheme == "smtp" and (url.username or server.has_extn("starttls")):
            server.starttls(context=context)
        if url.username:
            server.login(unquote(url.username), unquote(url.password or ""))
        server.send_message(mail)


if __name__ == "__main__":
    sys.exit(main())
