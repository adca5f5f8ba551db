"""A very small editor: uses the language server protocol with yaml-language-server over stdio."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 30.0


class Editor:
    """One language server with our schemas, as ``yaml.schemas`` of an editor's settings would name them."""

    def __init__(self, server: Path, folder: Path, schemas: dict[Path, str]) -> None:
        self._settings = {
            "schemas": {schema.as_uri(): pattern for schema, pattern in schemas.items()},
            "schemaStore": {"enable": False, "url": ""},
            "kubernetesCRDStore": {"enable": False},
            "validate": True,
            "hover": True,
            "completion": True,
            "yamlVersion": "1.2",
            "customTags": ["!secret scalar"],
        }
        self._folder = folder
        self._process = subprocess.Popen(
            ["node", str(server), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._diagnostics: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Editor:
        """Greet the server."""
        self._ask(
            "initialize",
            {
                "processId": None,
                "rootUri": self._folder.as_uri(),
                "capabilities": {
                    "textDocument": {
                        "hover": {"contentFormat": ["markdown"]},
                        "completion": {"completionItem": {"snippetSupport": True}},
                    },
                    "workspace": {"configuration": True},
                },
            },
        )
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": {"yaml": self._settings}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server."""
        self._process.kill()
        self._listener.join(PATIENCE)
        self._process.wait(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def open(self, name: str, text: str) -> list[dict[str, Any]]:
        """Open a text under a name and return what the server finds wrong with it."""
        uri = self._uri(name)
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        while True:
            found = self._diagnostics.get(timeout=PATIENCE)
            if found["uri"] == uri:
                diagnostics: list[dict[str, Any]] = found["diagnostics"]
                return diagnostics

    def hover(self, name: str, line: int, column: int) -> str:
        """Return what is shown for a place; both count from 0."""
        answer = self._ask("textDocument/hover", self._at(name, line, column))
        return "" if answer is None else str(answer["contents"]["value"])

    def complete(self, name: str, line: int, column: int) -> dict[str, Any]:
        """Return the names that are offered at a place, each with its description."""
        answer = self._ask("textDocument/completion", self._at(name, line, column))
        return {item["label"]: item for item in (answer or {}).get("items", [])}

    def _at(self, name: str, line: int, column: int) -> dict[str, Any]:
        return {"textDocument": {"uri": self._uri(name)}, "position": {"line": line, "character": column}}

    def _uri(self, name: str) -> str:
        return (self._folder / name).as_uri()

    def _ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            answer = self._answers.get(timeout=PATIENCE)
            if answer["id"] == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _listen(self) -> None:
        while (message := self._read()) is not None:
            if "method" not in message:
                self._answers.put(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                self._diagnostics.put(message["params"])
            elif "id" in message:
                self._send({"id": message["id"], "result": self._reply(message)})

    def _reply(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        return [self._settings if item.get("section") == "yaml" else None for item in message["params"]["items"]]

    def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            if not line.strip() and length:
                break
        else:
            return None  # the server is gone
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message
