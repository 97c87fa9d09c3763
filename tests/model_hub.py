"""A model hub on this machine: serves files of repositories as Hugging Face does, and listens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

REVISION = "c0ffee" * 6 + "c0ff"  # as long as a commit's id


@dataclass
class Hub:
    """Repositories by name, each a folder of files at one revision; ``asked`` are the paths."""

    address: str = ""
    repositories: dict[str, Path] = field(default_factory=dict)
    revision: str = REVISION
    asked: list[str] = field(default_factory=list)
    elsewhere: str = "/elsewhere"  # where large files are redirected to

    def answer(self, path: str) -> tuple[int, bytes | str]:
        """Status, and a body or the address of a redirection."""
        self.asked.append(path)
        for name, folder in self.repositories.items():
            if path == f"/api/models/{name}/revision/main":
                return 200, self._listing(folder)
            resolved = f"/{name}/resolve/{self.revision}/"
            if path.startswith(resolved):
                return 302, f"{self.elsewhere}/{name}/{path.removeprefix(resolved)}"
            file = folder / path.removeprefix(f"/elsewhere/{name}/")
            if path.startswith("/elsewhere/") and file.is_file():
                return 200, file.read_bytes()
        return 404, b"no such file"

    def _listing(self, folder: Path) -> bytes:
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        siblings = [
            {"rfilename": file.relative_to(folder).as_posix(), "size": file.stat().st_size}
            for file in files
        ]
        return json.dumps({"sha": self.revision, "siblings": siblings, "private": False}).encode()


@contextmanager
def running() -> Iterator[Hub]:
    """A hub that answers until the end."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = hub.answer(unquote(urlsplit(self.path).path))
            self.send_response(status)
            if isinstance(body, str):
                self.send_header("Location", body)
                body = b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
