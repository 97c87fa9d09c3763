"""Files made to hurt cost little time and little memory, and each is reported by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from limited_reading import LimitedReader

Put = Callable[[str, "str | bytes"], Path]

MEMORY_BYTES = 256 * 1024 * 1024  # above what Python and the readers need once imported
SECONDS = 10  # of processor time, for reading files of up to 2 MB

BILLION_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)

HOSTILE = {
    "billion laughs": ("a.md", f"---\n{BILLION_LAUGHS}---\nwords"),
    "merge keys": ("a.md", "---\na: &a {b: 1}\nc:\n  <<: *a\n---\nwords"),
    "deep YAML flow": ("a.md", "---\na: " + "[" * 500_000 + "\n---\nwords"),
    "deep YAML maps": ("a.md", "---\na: " + "{a: " * 200_000 + "\n---\nwords"),
    "deep YAML blocks": (
        "a.md",
        "---\n" + "".join(" " * n + "a:\n" for n in range(1_000)) + "---\nwords",
    ),
    "many YAML keys": ("a.md", "---\n" + "".join(f"k{n}: v\n" for n in range(80_000)) + "---\nw"),
    "many YAML values": ("a.md", "---\na: [" + "[]," * 300_000 + "]\n---\nwords"),
    "complex YAML keys": ("a.md", "---\n" + "? " * 300_000 + "\n---\nwords"),
    "YAML document marks": ("a.md", "---\n%YAML 9.9\n---\nwords"),
    "huge YAML block": ("a.md", "---\na: " + "x" * 1_100_000 + "\n---\nwords"),
    "YAML object": ("a.md", "---\na: !!python/object/apply:os._exit [9]\n---\nwords"),
    "YAML custom tag": ("a.md", "---\na: !include /etc/passwd\n---\nwords"),
    "TOML dotted key": ("a.md", "+++\n" + ".".join("a" * 30_000) + " = 1\n+++\nwords"),
    "TOML dotted table": ("a.md", "+++\n[" + ".".join("a" * 30_000) + "]\n+++\nwords"),
    "TOML dots in an inline table": (
        "a.md",
        "+++\nx = {" + ".".join(['"a"'] * 15_000) + " = 1}\n+++\nwords",
    ),
    "deep TOML": ("a.md", "+++\na = " + "[" * 60_000 + "\n+++\nwords"),
    "huge TOML": ("a.md", "+++\na = '" + "x" * 100_000 + "'\n+++\nwords"),
    "deep JSON": ("a.json", "[" * 1_000_000),
    "deep JSON row": ("a.json", '[{"text": "x", "a": ' + "[" * 500 + "]" * 500 + "}]"),
    "deep JSON objects": ("a.json", '{"a":' * 400_000),
    "JSON of many values": ("a.json", '[{"text": "x", "a": [' + "[]," * 600_000 + "[]]}]"),
    "JSON of backslashes": ("a.json", '["' + '\\"' * 1_000_000),
    "JSON of quotes": ("a.json", "[" + '"' * 1_999_999),
    "huge JSON number": ("a.json", '[{"text": "x", "n": ' + "9" * 1_000_000 + "}]"),
    "deep NDJSON": ("a.ndjson", '{"text": "x", "a": ' + "[" * 900_000 + "\n"),
    "NDJSON of many values": ("a.ndjson", '{"text": "x", "a": [' + "1," * 900_000 + "1]}\n"),
    "deep metadata cell": (
        "a.csv",
        'text,metadata,date\nx,"{""a"":' + "[" * 100_000 + '",soon\n',
    ),
    "topics without end": (
        "a.json",
        '[{"text": "x", "tags": "' + "".join(f"{n} " for n in range(200_000)) + 'b"}]',
    ),
    "thousands of topics": (
        "a.json",
        json.dumps([{"text": "x", "tags": [f"t{n}" for n in range(9_000)]}]),
    ),
    "one huge topic": ("a.json", json.dumps([{"text": "x", "tags": "t" * 100_000}])),
    "endless quoted cell": ("a.csv", 'id,text\n1,"' + "x\n" * 900_000),
    "thousands of columns": ("a.csv", ",".join(f"c{n}" for n in range(20_000)) + ",text,text\n"),
    "a database in name": ("a.db", "SQLite format 3\0" + "\xff" * 5_000),
}

HARMLESS = {
    "spaces before nothing": ("a.md", "# " + " " * 1_500_000 + "x #"),
    "heading of hashes": ("a.md", "#" * 1_500_000),
    "hashes and spaces": ("a.md", "# #" * 500_000),
    "backticks of all lengths": ("a.md", " ".join("`" * n for n in range(1, 1_500))),
    "backticks one by one": ("a.md", "` `` " * 300_000 + "#x"),
    "quote marks and fences": ("a.md", "> " * 700_000 + "```"),
    "fence of backticks": ("a.md", "```" + "`" * 1_000_000 + "\n#a\n"),
    "one long hashtag": ("a.md", "#" + "a" * 1_900_000),
    "brackets": ("a.md", "[](" * 500_000),
    "long lines of dots": ("a.md", "---\n" + "." * 1_000_000 + "\nwords"),
    "many rules": ("a.md", "---\n" * 400_000),
    "newlines": ("a.md", "\n" * 1_900_000 + "#x"),
}


needs_limits = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="limits of a process are set the Linux way"
)


@pytest.fixture(scope="module")
def limited() -> Iterator[LimitedReader]:
    reader = LimitedReader()
    yield reader
    reader.close()


@needs_limits
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_a_failure_within_tight_bounds(
    put: Put, limited: LimitedReader, what: str
) -> None:
    name, content = HOSTILE[what]
    path = put(name, content.encode("latin-1"))
    outcome = limited.read(path, memory_bytes=MEMORY_BYTES, seconds=SECONDS)
    assert outcome["drafts"] == 0
    assert outcome["failures"]
    for place, reason in outcome["failures"].items():
        assert place.startswith(name)
        assert len(place) + len(reason) < 2_000


@needs_limits
@pytest.mark.parametrize("what", HARMLESS)
def test_an_odd_file_is_read_within_tight_bounds(
    put: Put, limited: LimitedReader, what: str
) -> None:
    name, content = HARMLESS[what]
    outcome = limited.read(put(name, content), memory_bytes=MEMORY_BYTES, seconds=SECONDS)
    assert outcome == {"drafts": 1, "skips": {}, "failures": {}}


@pytest.mark.sampled(0)
@needs_limits
def test_the_limits_of_these_tests_do_bite(put: Put, limited: LimitedReader) -> None:
    """The positive control: a large file that is allowed does not fit a process this small."""
    path = put("a.md", b"word #a\n" * (16 * 1024 * 1024 // 8))
    with pytest.raises(AssertionError, match="MemoryError"):
        limited.read(path, memory_bytes=16 * 1024 * 1024, seconds=SECONDS)
    with pytest.raises(AssertionError, match="exit code -"):
        limited.read(path, memory_bytes=MEMORY_BYTES, seconds=0)
