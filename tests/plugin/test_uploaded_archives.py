"""Archives that are uploaded: what is taken, and what is refused before it costs anything."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zip_files import zipped

from datasette_hybrid.uploads import files
from datasette_hybrid.uploads.files import sources
from memory_store.errors import MemoryStoreError
from memory_store.importing.source_file import Failure, Skip, SourceFile

from .uploads import NOTES


def test_archives_that_are_made_to_harm_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped({"zeros.txt": b"0" * 20_000_000})
    assert [type(one) for one in sources([("bomb.zip", bomb)])] == [Failure]
    nested = sources([("outer.zip", zipped({"inner.zip": zipped(NOTES), "ok.md": b"x"}))])
    assert sorted(type(one).__name__ for one in nested) == ["Skip", "SourceFile"]
    escaping = sources([("out.zip", zipped({"../../x.md": b"x", "/abs.md": b"x"}))])
    assert [type(one) for one in escaping] == [Failure, Failure]
    assert [type(one) for one in sources([("no.zip", b"PK no archive")])] == [Failure]
    monkeypatch.setattr(files, "FILES_LIMIT", 3)
    many = sources([("many.zip", zipped({f"{n}.md": b"x" for n in range(9)}))])
    assert [type(one) for one in many] == [Failure]
    monkeypatch.setattr(files, "EXPANDED_LIMIT", 10)
    assert [type(one) for one in sources([("big.zip", zipped({"a.md": b"x" * 11}))])] == [Failure]


def test_members_are_taken_only_by_methods_whose_expansion_has_a_bound() -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as made:
            made.writestr("note.md", b"\0" * 100_000)
            made.writestr("plain.md", b"text", zipfile.ZIP_STORED)
        first, second = sources([("a.zip", out.getvalue())])
        assert isinstance(first, Failure)
        assert (first.name, "deflate" in first.reason) == ("note.md", True)
        assert isinstance(second, SourceFile)


def test_a_member_is_expanded_no_further_than_it_says() -> None:
    content = bytearray(zipped({"note.md": b"0" * 30_000_000}))
    entry = content.rfind(b"PK\1\2")
    content[entry + 24 : entry + 28] = struct.pack("<I", 1_000)
    (found,) = sources([("a.zip", bytes(content))])
    assert isinstance(found, SourceFile)
    tracemalloc.start()
    with found.open() as stream, pytest.raises(MemoryStoreError, match="broken"):
        stream.read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_an_export_that_is_uploaded_is_understood_by_its_content() -> None:
    notes = {"Takeout/Keep/a.json": b"{}", "Takeout/Keep/a.html": b"x", "Takeout/n.enex": b"x"}
    found = sources([("takeout.zip", zipped(notes))])
    assert [type(one).__name__ for one in found] == ["SourceFile", "Skip", "SourceFile"]
    parts = zipped({"Part-1.zip": zipped({"a.md": b"x"})})
    assert [one.name for one in sources([("export.zip", parts)])] == ["a.md"]


def directory(entries: int, *, zip64: bool) -> bytes:
    """An archive of nothing but directory entries."""
    entry = b"PK\1\2" + bytes([20, 0, 20, 0]) + bytes(38)
    entry = entry[:28] + struct.pack("<H", 2) + entry[30:] + b"a/"
    listed = entry * entries
    size, most = len(listed), 0xFFFFFFFF
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, most if zip64 else size, 0, 0)
    if zip64:
        record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
        end = record + struct.pack("<4sLQL", b"PK\6\7", 0, size, 1) + end
    return listed + end


@pytest.mark.parametrize("zip64", [False, True])
def test_a_directory_that_is_too_large_is_refused_before_it_is_read(zip64: bool) -> None:
    assert sources([("a.zip", directory(3, zip64=zip64))]) == []  # it is understood, then
    content = directory(200_000, zip64=zip64)
    tracemalloc.start()
    (failed,) = sources([("a.zip", content)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(failed, Failure)
    assert "list of files is too long" in failed.reason
    assert peak < 2 * len(content)


def test_members_that_overlap_lie_or_have_no_name_of_a_file_are_refused() -> None:
    content = zipped({"a.md": bytes(range(256)) * 40, "b.md": bytes(range(256)) * 40})
    entry = content.rfind(b"PK\1\2")
    first = content[content.find(b"PK\1\2") :][:46]
    overlapping = content[:entry] + first[:20] + struct.pack("<I", len(content))
    overlapping += content[entry + 24 :]
    (failed,) = sources([("a.zip", overlapping)])
    assert "overlap" in failed.reason  # type: ignore[union-attr]
    beyond = bytearray(content)
    beyond[entry + 42 : entry + 46] = struct.pack("<I", 0xFFFFFFF0)
    for one in sources([("a.zip", bytes(beyond))])[1:]:
        with pytest.raises(MemoryStoreError, match="broken"):
            one.open().read()  # type: ignore[union-attr]
    locked = bytearray(content)
    locked[entry + 8] |= 1
    assert "password" in sources([("a.zip", bytes(locked))])[1].reason  # type: ignore[union-attr]
    behind = sources([("a.zip", content + b"x" * 70_000)])
    assert [type(one) for one in behind] == [Failure]
    for name in ("x.md\0.exe", "C:\\x.md", "..\\x.md", "a/../../x.md", "\\\\host\\x.md"):
        renamed = content.replace(b"b.md", b"q.md")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as made:
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name
            made.writestr(info, renamed)
        assert [type(one) for one in sources([("a.zip", out.getvalue())])] == [Failure], name


@given(st.text(max_size=40), st.binary(max_size=200))
def test_no_name_and_no_bytes_break_it_or_lead_out(name: str, content: bytes) -> None:
    for one in sources([(name, content), (f"{name}.zip", content), (f"{name}.md", content)]):
        assert isinstance(one, Failure | Skip | SourceFile)
        if isinstance(one, SourceFile):
            assert ".." not in one.ref.split("/")
            assert not one.ref.startswith("/")
