"""No word of an export reaches the disk in the clear while it is imported, not for a moment."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from canaries import canary
from test_canaries_in_files import LONGEST, WRITING, shown
from tracing import traced

pytest.importorskip("markdownify", reason="the extra documents is not installed")

PIPE = re.compile(r"\d+ +\w+\(\d+<(?:pipe|\\x70\\x69\\x70\\x65)")
"""A call that writes to a pipe: to a process that reads documents, which can write to no file."""

IMPORTS = """
import sys
from memory_store.store import MemoryStore
store, _ = MemoryStore.create(sys.argv[1], key_file=sys.argv[2])
with store:
    report = store.import_paths(sys.argv[3:], embed=False)
    assert (report.imported, report.failed) == (5, 0), report
"""


def test_no_canary_of_an_export_is_ever_written(tmp_path: Path) -> None:
    word = canary("text")
    (tmp_path / "vault").mkdir()
    (tmp_path / "keys").mkdir()
    note = f"<note><title>{word}</title><content>&lt;p&gt;{word}&lt;/p&gt;</content></note>"
    (tmp_path / "notes.enex").write_text(f"<en-export>{note}</en-export>")
    (tmp_path / "bookmarks.html").write_text(
        f'<!DOCTYPE NETSCAPE-Bookmark-file-1><a href="https://{word}.org">{word}</a>'
    )
    (tmp_path / "cards.txt").write_text(f"#separator:tab\n#html:true\n<b>{word}</b>\t{word}\n")
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a/note.md", f"# {word}")
        keep = {"isTrashed": False, "textContent": word, "createdTimestampUsec": 1714564800000000}
        made.writestr("Keep/note.json", json.dumps(keep))
    names = ("notes.enex", "bookmarks.html", "cards.txt", "export.zip")
    places = [tmp_path / "vault" / "notes.db", tmp_path / "keys" / "key"]
    script = ["-c", IMPORTS, *map(str, [*places, *(tmp_path / name for name in names)])]
    seen = traced(tmp_path / "written.log", script, WRITING, "-y", "-s", str(LONGEST), "-xx")
    to_pipes = [one for one in seen.calls if PIPE.match(one)]
    content = b"\n".join(shown(one) for one in seen.calls if not PIPE.match(one))
    assert word.encode() in b"".join(map(shown, to_pipes)), "what a reader is given is seen"
    assert len(content) > places[0].stat().st_size
    assert word.encode() not in content
