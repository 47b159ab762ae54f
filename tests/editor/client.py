"""A small client of the language server protocol over standard input and output: opens one document
and asks about it.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

TIMEOUT_S = 300


class Editor:
    """A running yaml-language-server with one schema for every *.yaml file; use it as a context."""

    def __init__(self, node: str, server: Path, folder: Path, schema: Path | None) -> None:
        self._folder = folder
        self._schema = schema
        self._process = subprocess.Popen(
            [node, str(server), "--stdio"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._arrived: queue.Queue[dict[str, Any]] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Editor:
        self._ask(
            "initialize",
            {
                "processId": None,
                "rootUri": self._folder.as_uri(),
                "capabilities": {"workspace": {"configuration": True}},
            },
        )
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": {"yaml": self._settings()}})
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(TIMEOUT_S)

    def problems(self, name: str, text: str) -> list[dict[str, Any]]:
        """Open a document and return its diagnostics."""
        uri = (self._folder / name).as_uri()
        self._tell(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}},
        )
        told = self._until(
            lambda message: (
                message.get("method") == "textDocument/publishDiagnostics"
                and message["params"]["uri"] == uri
            )
        )
        problems: list[dict[str, Any]] = told["params"]["diagnostics"]
        return problems

    def completions(self, name: str, line: int, character: int) -> list[dict[str, Any]]:
        """Return what is offered at a place (from 0) of an open document."""
        answer = self._ask("textDocument/completion", self._place(name, line, character))
        items: list[dict[str, Any]] = answer["items"] if isinstance(answer, dict) else answer
        return items

    def hover(self, name: str, line: int, character: int) -> str:
        """Return the words shown over a place (from 0) of an open document."""
        answer = self._ask("textDocument/hover", self._place(name, line, character))
        return json.dumps(answer["contents"]) if answer else ""

    def _place(self, name: str, line: int, character: int) -> dict[str, Any]:
        return {
            "textDocument": {"uri": (self._folder / name).as_uri()},
            "position": {"line": line, "character": character},
        }

    def _settings(self) -> dict[str, Any]:
        schemas = {self._schema.as_uri(): ["*.yaml"]} if self._schema else {}
        store = {"enable": False}  # no network in tests
        return {
            "schemas": schemas,
            "schemaStore": store,
            "validate": True,
            "completion": True,
            "hover": True,
            "format": {"enable": False},
        }

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": parameters})
        answer = self._until(
            lambda message: message.get("id") == number and "method" not in message
        )
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]

    def _tell(self, method: str, parameters: dict[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _until(self, wanted: Any) -> dict[str, Any]:
        """Return the first wanted message, kept or still to come; the server's own questions are
        answered on the way.
        """
        for message in self._kept:
            if wanted(message):
                self._kept.remove(message)
                return message
        while True:
            message = self._arrived.get(timeout=TIMEOUT_S)
            if "method" in message and "id" in message:
                self._answer(message)
            elif wanted(message):
                return message
            else:
                self._kept.append(message)

    def _answer(self, question: dict[str, Any]) -> None:
        result: Any = None
        if question["method"] == "workspace/configuration":
            given = {"yaml": self._settings(), "[yaml]": {}, "editor": {}, "files": {}, "http": {}}
            result = [
                given.get(item.get("section", ""), {}) for item in question["params"]["items"]
            ]
        self._send({"id": question["id"], "result": result})

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            if length == 0:
                return
            self._arrived.put(json.loads(stream.read(length)))
