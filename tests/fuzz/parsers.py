# ruff: noqa: PT017  (what else may happen is no fault)
"""One harness for each parser of what strangers send: bytes in, and nothing but what is declared.

Each takes any bytes at all and asserts what its parser promises; any exception that leaves it is a
fault. Hypothesis runs them with every test (tests/proofs/test_hostile_parsers.py), Atheris on
demand and guided by coverage (``make fuzz``).
"""

from __future__ import annotations

import io
import json
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "index"))  # made_up_entries

from harness import Parser, text_of
from key_parsers import KEY_PARSERS
from made_up_entries import varied_entries

from datasette_hybrid.uploads.files import EXPANDED_LIMIT, sources
from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import Place, SealingKey, seal, unseal
from memory_store.dates import parse_moment, parse_time
from memory_store.errors import BadInputError, FormatError, MemoryStoreError, TamperedError
from memory_store.importing.readers import read_file
from memory_store.importing.source_file import Failure, Remark, Skip, SourceFile
from memory_store.index.codec import decode, encode
from memory_store.records import MemoryDraft, SearchRequest, read_request, search_request
from memory_store.search import paging
from memory_store.search.query.language import ParsedQuery, parse, resolve_mode
from memory_store.search.query.patterns import compiled
from memory_store.search.query.regular_expressions import needs
from memory_store.text.plain_json import read_json, write_json
from memory_store.vault.page_keys import PageKeys

NOW = 1_700_000_000.0
PLACE = Place(b"v" * 16, "notes", "memories", "body", "a row", 3)
COLUMNS_AT = 16  # bytes of a segment's header, the checksum at 8


def query(data: bytes) -> None:
    """The query language, the choice of a mode, and what a pattern needs."""
    text = text_of(data)
    try:
        parsed = parse(search_request(text))
    except BadInputError as error:
        assert error.parameter == "q"
    else:
        assert isinstance(parsed, ParsedQuery)
        assert all(phrase.words for phrase in (*parsed.required, *parsed.excluded))
        parsed.reading.encode("utf-8")
    assert resolve_mode(SearchRequest(text, mode="auto")) in ("hybrid", "literal", "structural")


def pattern(data: bytes) -> None:
    """Regular expressions: a text that matches holds what the pattern is said to need."""
    try:
        source, marker = compiled(text_of(data).encode("utf-8", "replace").decode())
        needs(source)
    except BadInputError as error:
        assert error.parameter == "q"
    else:
        marker.spans("some words, connect_timeout=30 and ünïcödé\n" * 3)


def _read(kind: str, data: bytes) -> None:
    path = Path(f"/uploaded/a.{kind}")
    file = SourceFile(path, path.parent, path.name, kind, path.name, content=lambda: data)
    for item in read_file(file):
        assert isinstance(item, MemoryDraft | Skip | Failure | Remark)
        if isinstance(item, MemoryDraft):
            write_json(dict(item.metadata)).encode("utf-8")
        else:
            assert len(item.name) + len(item.reason) < 2_000


def note(data: bytes) -> None:
    """A Markdown file: front matter in YAML or TOML, headings, hashtags."""
    _read("markdown", data)


def rows(data: bytes) -> None:
    """A JSON document, lines of NDJSON, and a table: the first byte chooses."""
    kinds = ("json", "ndjson", "csv", "tsv")
    _read(kinds[data[0] % len(kinds)] if data else "json", data[1:])


def segment(data: bytes) -> None:
    """The columns of a search index: main, vectors and pairs, each with a checksum that fits."""
    parts = data.split(b"--part--")
    main, vectors, pairs = (*map(_checked, enumerate(parts[:3], 1)), *[b""] * 3)[:3]
    try:
        decoded = decode(bytearray(main), bytearray(vectors), bytearray(pairs))
        assert np.all(decoded.terms.docs < decoded.count)
        assert decoded.vectors.shape == (decoded.windows, decoded.dimensions)
        assert np.all(decoded.pairs.docs < decoded.count)
    except ValueError:
        return
    again = encode(decoded)
    assert decode(again.main, again.vectors, again.pairs).count == decoded.count
    decoded.wipe()


def _checked(numbered: tuple[int, bytes]) -> bytes:
    number, columns = numbered
    return struct.pack("<4sBBHII", b"MSEG", 1, number, 0, zlib.crc32(columns), 0) + columns


def blob(data: bytes) -> None:
    """A sealed value, its header first: nothing but what was sealed opens."""
    key, sealed = _sealed()
    try:
        opened = unseal(key, PLACE, data)
    except (TamperedError, FormatError):
        assert data != sealed
    else:
        assert data == sealed
        assert bytes(opened) == b"a note"


@cache
def _sealed() -> tuple[SealingKey, bytes]:
    key = SealingKey(SecretKey(bytes(range(32))))
    return key, seal(key, PLACE, b"a note")


@dataclass(frozen=True)
class OneKey:
    """Keys of one vault, as :class:`PageKeys` needs them."""

    key: SealingKey

    def place(self, table: str, column: str, row: str) -> Place:
        return Place(b"v" * 16, "", table, column, row)

    def seal(self, purpose: str, place: Place, content: bytes, least: int) -> bytes:
        return seal(self.key, place, content, least)

    def unseal(self, purpose: str, place: Place, content: bytes, least: int) -> memoryview:
        return unseal(self.key, place, content, least=least)


def continuation(data: bytes) -> None:
    """A token for the next page: as sent by a stranger, and as it would be after unsealing."""
    keys = PageKeys(OneKey(_sealed()[0]))  # type: ignore[arg-type]
    try:
        paging.continue_place(lambda: keys, SearchRequest("q", continue_=text_of(data) or None))
    except BadInputError as error:
        assert error.parameter == "continue"
    try:
        place = paging._unpacked(data)
    except struct.error:
        return
    assert paging._unpacked(paging._packed(place)) == place or math.isnan(place.value)


def moment(data: bytes) -> None:
    """Dates and spans in all their spellings."""
    text = text_of(data)
    try:
        written = parse_time(text)
        assert parse_time(written) == written
    except BadInputError as error:
        assert error.parameter == "date"
    for end in (False, True):
        try:
            assert math.isfinite(parse_moment(text, NOW, end=end))
        except BadInputError as error:
            assert error.parameter == "since"


def options(data: bytes) -> None:
    """The JSON of a search's options."""
    try:
        values = read_json(data)
    except (ValueError, RecursionError):
        return
    json.loads(write_json(values))
    if not isinstance(values, dict):
        return
    try:
        asked = read_request(values)
    except BadInputError as error:
        assert error.parameter in values
    else:
        assert isinstance(asked, SearchRequest)
        paging._search(asked)


def archive(data: bytes) -> None:
    """An uploaded zip, and all that is in it."""
    expanded = 0
    try:
        found = sources([("notes.zip", data)])
    except BadInputError as error:
        assert error.parameter == "file"
        return
    for item in found:
        if not isinstance(item, SourceFile):
            assert isinstance(item, Skip | Failure)
            continue
        assert ".." not in item.path.parts
        assert not item.ref.startswith("/")
        try:
            with item.open() as stream:
                expanded += len(stream.read())
        except MemoryStoreError:
            continue
        for read in read_file(item):
            assert isinstance(read, MemoryDraft | Skip | Failure | Remark)
    assert expanded <= EXPANDED_LIMIT


def _zipped() -> list[bytes]:
    made = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as packed:
            packed.writestr("notes/a.md", "# A\n\nwords " + "words " * 50)
            packed.writestr("rows.json", '[{"text": "a row"}]')
            packed.writestr("../b.md", "out")
        made.append(out.getvalue())
    return made


def _segments() -> list[bytes]:
    made = []
    for count in (0, 1, 5):
        entries = varied_entries(count, count)
        encoded = encode(_built(entries))
        made.append(b"--part--".join(bytes(part)[COLUMNS_AT:] for part in encoded))
    return made


def _built(entries: list) -> object:
    from made_up_entries import DIMENSIONS

    from memory_store.index.segment import build

    return build(entries, DIMENSIONS)


def _tokens() -> list[bytes]:
    places = [
        paging.Place(10, 4, 10, 7, 10, 2**32 - 1, 0.25),
        paging.Place(0, 0, 100, 7, 0, 5, NOW, done=2**72 - 1),
        paging.Place(3, 2**16 - 1, 32, 0, 3, 5, float(np.inf), done=5),
    ]
    keys = PageKeys(OneKey(_sealed()[0]))  # type: ignore[arg-type]
    tokens = [paging.continue_token(keys, SearchRequest("q"), place) for place in places]
    return [*map(paging._packed, places), *(token.encode() for token in tokens)]


PARSERS: Mapping[str, Parser] = {
    "query": Parser(
        query,
        lambda: [
            b'topic:garden type:fact in:"my notes" since:7d until:2024-05-01 "a phrase" -not -"no"',
            b"lex: words\nvec: meaning\nhyde: an answer\nintent: why",
            b"/connect_timeout=\\d+/",
            "„Gießkanne“ «été» getUserById $NAME ::".encode(),
        ],
    ),
    "pattern": Parser(
        pattern,
        lambda: [
            b"connect_timeout=\\d+",
            b"(?i)time(out|r) [^a-z]{2,3}\\Q.*\\E",
            b"^(a|b)+?\\p{L}\\x{41}[[:alpha:]\\]]$",
        ],
    ),
    "note": Parser(
        note,
        lambda: [
            b"---\ntitle: A\ntopics: [a, b]\ncreated: 2024-05-01\n---\n# Heading\n\n#tag `code`\n",
            b'+++\ntitle = "A"\ntags = ["a"]\ndate = 2024-05-01T10:00:00Z\n+++\nwords',
            b"---\na: |\n  block\nb: >-\n  fold\nc: {d: [1, 2.5, true, ~]}\n...\nTitle\n=====\n",
        ],
    ),
    "rows": Parser(
        rows,
        lambda: [
            b'\x00[{"text": "one", "tags": ["a"], "metadata": {"b": 1}}, {"text": "two"}]',
            b'\x00{"rows": [{"text": "one", "created": "2024-05-01"}]}',
            b'\x01{"text": "one"}\n{"text": "two", "id": "00000000-0000-4000-8000-000000000001"}\n',
            b'\x02text,title,tags\n"a, b",c,"d e"\n',
            b"\x03text\ttitle\na\tb\n",
        ],
    ),
    "segment": Parser(segment, _segments),
    "blob": Parser(blob, lambda: [_sealed()[1]]),
    "continuation": Parser(continuation, _tokens),
    "moment": Parser(
        moment,
        lambda: [
            b"2024-05-01T09:30:00+02:00",
            b"7d",
            b"Wed, 1 May 2024 10:00:00 +0200",
            b"May 1st, 2024",
            b"01.05.2024 9:30",
            b"1714555800000",
            b"202405010930",
            b"2024",
        ],
    ),
    "options": Parser(
        options,
        lambda: [
            b'{"limit": 5, "topic": ["a"], "meta": {"k": "v"}, "min_score": 0.5, "deep": true}',
            b'{"since": "7d", "narrow": ["type:fact"], "continue": "abc", "budget": "100"}',
        ],
    ),
    "archive": Parser(archive, _zipped),
    **KEY_PARSERS,
}
"""Every parser by name."""
