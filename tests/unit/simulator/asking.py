"""A small HTTP client of the tests' own: it shares no code with msauto's client, nor with the simulator."""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass
from urllib.parse import quote
from xml.etree import ElementTree as ET

from msauto.plugins.simulator.embedded import Simulator


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def xml(self) -> ET.Element:
        return ET.fromstring(self.body)


def quoted(name: str) -> str:
    """A name as part of a path: the backslash rule, then percent-encoding of everything."""
    return quote(name.replace("\\", "\\\\").replace("/", "\\/"), safe="")


def asset(title: str, database: str = "NEWS") -> str:
    return f"/storage/{quoted(database)}@{quoted(title)}"


class Asker:
    """Asks one simulator; a connection for each request, so that a cut one disturbs no other."""

    def __init__(self, sim: Simulator) -> None:
        self.sim = sim

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.sim.port, timeout=10)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body, named)
            response = connection.getresponse()
            return Reply(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def get(self, target: str, **headers: str) -> Reply:
        return self.ask("GET", target, None, **headers)

    def command(self, title: str, command: str, /, **params: object) -> Reply:
        return self.ask("POST", asset(title) + command_query(command, **params))

    def clip(self, title: str) -> ET.Element:
        reply = self.get(asset(title))
        assert reply.status == 200, reply
        return reply.xml

    def attrs(self, title: str) -> dict[str, str]:
        return {
            child.get("name", ""): child.text or "" for child in self.clip(title).findall("Attr")
        }

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are; all that comes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.sim.port), timeout=10) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
            return received


def command_query(command: str, /, **params: object) -> str:
    pairs = [
        f"{quote(name, safe='')}={quote(str(value), safe='')}" for name, value in params.items()
    ]
    return "?" + "&".join([f"command={command}", *pairs])
