"""Thousands of strings that break programs, in every part of a request to every address.

They go round queries, values of options, parts of the path, fields of forms, JSON, headers and
uploads (names and contents); besides, all of them go to each kind of place where words come in. No
answer is a fault of the server, none shows a trace, and a refusal in JSON names the parameter. The
vault searches on as before.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from counts import FULL, counted
from naughty import as_bytes, strings
from plugin.browsing import PATIENCE
from plugin.conftest import ALLOW, Filled, Serve, Served
from zip_files import zipped

from datasette_hybrid.requests.cross_site import BY_TOKEN
from datasette_hybrid.serving import routes
from memory_store.records import OPTION_NAMES

STRINGS = counted(10_000)
SECONDS = 5  # of processor time for one request
PLACES_EACH = 1 if FULL else 3  # parts of requests that each string is put into
ONE = "00000000-0000-4000-8000-000000000001"
PHRASE = '"every second day"'  # stands in that memory alone
BEARER = {"Authorization": "Bearer none"}  # 0.65 then asks for no token
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
FIELDS = ("text", "title", "type", "topics", "id", "created", "metadata", "ref", "collection")
HEADERS = ("Cookie", "Authorization", "Content-Type", "If-Match", "Origin", "Host", "Accept")
NO_LINES = re.compile(rb"[\r\n\0]")  # no server hands these on within a header
LONGEST_ADDRESS = 6_000  # bytes: servers refuse longer ones
LONGEST_NAME = 3_000  # bytes: forms with longer ones are refused as a whole


@dataclass(frozen=True)
class Sent:
    """A request: method, path as on the wire, headers, body."""

    method: str
    path: str
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    body: bytes = b""
    option: str | None = None


def escaped(text: str) -> str:
    """Percent-encoded bytes, as many as an address takes."""
    return quote(as_bytes(text)[: LONGEST_ADDRESS // 3], safe="")


def addresses() -> list[str]:
    """Every route of the plugin, its parts named in braces."""
    found = []
    for pattern, _ in routes():
        path = re.sub(r"\(\?P<(\w+)>\[\^/\]\+\)", r"{\1}", pattern.strip("^$")).replace("\\", "")
        found.append(re.sub(r"\[\./\].*", "/nowhere.json" if "json" in path else "/nowhere", path))
    return found


KNOWN = {"database": "notes", "id": ONE, "job": "none", "actor": "alice"}
ADDRESSES = addresses()
LOCKS = "/{database}/-/hybrid/lock"


def known(address: str) -> str:
    return address.format(**KNOWN)


def in_path(address: str, part: str) -> Callable[[str], Sent]:
    return lambda text: Sent("GET", address.format(**{**KNOWN, part: escaped(text) or "-"}))


def in_address(address: str, name: str) -> Callable[[str], Sent]:
    query = "" if name == "q" else "q=tomatoes&"
    return lambda text: Sent("GET", f"{known(address)}?{query}{name}={escaped(text)}", option=name)


def in_form(address: str, name: str) -> Callable[[str], Sent]:
    other = b"q=tomatoes&" if name != "q" else b""
    return lambda text: Sent(
        "POST",
        known(address),
        FORM,
        other + name.encode() + b"=" + quote(as_bytes(text), safe="").encode(),
        name,
    )


def in_json(address: str, name: str, method: str = "POST") -> Callable[[str], Sent]:
    other = {"q": "tomatoes"} if name in OPTION_NAMES and "/-/hybrid." in address else {}
    return lambda text: Sent(
        method, known(address), JSON, json.dumps({**other, name: text}).encode(), name
    )


def as_body(address: str, method: str, kind: str) -> Callable[[str], Sent]:
    return lambda text: Sent(method, known(address), {"Content-Type": kind}, as_bytes(text))


def in_header(address: str, name: str) -> Callable[[str], Sent]:
    def made(text: str) -> Sent:
        value = NO_LINES.sub(b"", as_bytes(text))[:LONGEST_ADDRESS]
        return Sent("GET", known(address), {name: value})

    return made


def in_upload(part: str) -> Callable[[str], Sent]:
    """A form with one file whose ``part`` (name, content, name in an archive) is the string."""

    def made(text: str) -> Sent:
        name, content = b"a.md", b"words"
        if part == "name":
            name = as_bytes(text).replace(b'"', b"%22") + b".md"
        elif part == "archived":
            name, content = (
                b"a.zip",
                zipped({text.encode("utf-8", "replace").decode()[:900]: b"x"}),
            )
        else:
            name, content = f"a.{part}".encode(), as_bytes(text)
        return upload([(name, content)])

    return made


def in_files(text: str) -> Sent:
    """A form with a file of that name, as browsers write it, and one of each kind that holds it."""
    raw = as_bytes(text)
    name = raw.replace(b'"', b"%22").replace(b"\r", b"%0D").replace(b"\n", b"%0A")
    named = (name[:LONGEST_NAME] + b".md", b"words")
    return upload([named, *((f"a.{end}".encode(), raw) for end in ("md", "json", "ndjson", "csv"))])


def upload(files: Sequence[tuple[bytes, bytes]]) -> Sent:
    """A form of names and contents, imported on trial."""
    parts = [b'Content-Disposition: form-data; name="dry_run"\r\n\r\n1']
    parts += [
        b'Content-Disposition: form-data; name="file"; filename="%b"\r\n\r\n%b' % file
        for file in files
    ]
    body = b"".join(b"--b\r\n%b\r\n" % part for part in parts) + b"--b--\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    return Sent("POST", "/notes/-/hybrid/import.json", kind, body)


def places() -> list[Callable[[str], Sent]]:
    """Every part of a request that can hold a string."""
    search = [one for one in ADDRESSES if re.search(r"-/hybrid(\.json|\.csv)?$", one)]
    others = [one for one in ADDRESSES if one not in search]
    made: list[Callable[[str], Sent]] = []
    for address in search:
        made += [in_address(address, "q"), in_form(address, "q"), in_json(address, "q")]
        made += [in_address(address, name) for name in (*OPTION_NAMES, "_shape")]
        made += [in_json(address, name) for name in OPTION_NAMES]
        made += [in_form(address, name) for name in ("topic", "continue", "without")]
    for address in others:
        if address == LOCKS:
            continue
        made += [in_path(address, part) for part in re.findall(r"{(\w+)}", address)]
        made += [in_address(address, name) for name in ("q", "_next", "since", "before", "who")]
        made += [in_form(address, name) for name in (*FIELDS[:5], "csrftoken", "secret")]
        if address.endswith(".json"):
            made += [in_json(address, name) for name in (*FIELDS, "ids", "memories", "name")]
            made += [in_json(address, name, "PATCH") for name in FIELDS]
            made += [as_body(address, method, "application/json") for method in ("POST", "PATCH")]
            made.append(as_body(address, "POST", "application/x-ndjson"))
    made += [in_header(address, name) for address in ADDRESSES for name in HEADERS]
    made += [in_upload(part) for part in ("name", "archived", "md", "json", "ndjson", "csv", "zip")]
    made += [in_table(name) for name in ("_hybrid", "_search", "_hybrid_topic", "_hybrid_mode")]
    made += [in_sql(sql) for sql in SQL]
    return made


def in_table(name: str) -> Callable[[str], Sent]:
    """``?_hybrid=`` and its options, on Datasette's page and JSON of the table."""
    other = "" if name in ("_hybrid", "_search") else "_hybrid=tomatoes&"
    ends = itertools.cycle(("", ".json", ".csv"))
    return lambda text: Sent("GET", f"/notes/memories{next(ends)}?{other}{name}={escaped(text)}")


SQL = (
    "select hybrid_search(:p)",
    "select hybrid_search('tomatoes', :p)",
    "select rank, title from hybrid_search(:p)",
    "select title from hybrid_search('tomatoes', json_object('topic', :p))",
    "select memory_text(:p), topic_hash(:p), hybrid_explain(:p)",
)


def in_sql(sql: str) -> Callable[[str], Sent]:
    path = "/notes.json" if BY_TOKEN else "/notes/-/query.json"  # 1.0 leads from one to the other
    return lambda text: Sent("GET", f"{path}?sql={quote(sql)}&p={escaped(text)}&_shape=array")


async def answered(served: Served, sent: Sent, text: str) -> Any:
    """What comes of it; fails for a fault of the server, a trace, a refusal that names nothing."""
    cookies = {} if "Cookie" in sent.headers else served.cookies
    begun = time.process_time()
    answer = await served.datasette.client.request(
        sent.method,
        sent.path,
        content=sent.body or None,
        cookies=cookies,
        headers={**BEARER, **sent.headers},
    )
    seconds = time.process_time() - begun
    reported = (sent.method, sent.path[:200], text[:200])
    assert answer.status_code < 500, (answer.status_code, reported, answer.text[:500])
    assert seconds < SECONDS, (seconds, reported)
    assert "Traceback" not in answer.text, reported
    if answer.status_code == 400 and sent.option and "hybrid.json?" in sent.path:
        parameter = answer.json()["parameter"]
        assert parameter in (sent.option, "q", *OPTION_NAMES), (parameter, reported)
    if answer.headers["content-type"].startswith("application/json") and sent.method != "HEAD":
        json.loads(answer.content)
    return answer


@pytest.mark.once
async def test_every_part_of_every_request_takes_or_refuses_them(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    root = served.by("root")
    everywhere = places()
    ways = itertools.cycle(everywhere)
    reached = 0
    for text in strings(max(STRINGS, len(everywhere) // PLACES_EACH + 1)):
        for place in itertools.islice(ways, PLACES_EACH):
            await answered(root, place(text), text)
            reached += 1
    assert reached >= len(everywhere)
    assert "datasette-hybrid:" not in capsys.readouterr().err  # what report_fault says
    found = (await root.get(".json?q=tomatoes")).json()
    assert ONE in {row["id"] for row in found["rows"]}


BASE = "/notes/-/hybrid"
SURFACES: dict[str, Callable[[str], Sent]] = {
    "page": in_address(BASE, "q"),
    "JSON": in_address(f"{BASE}.json", "q"),
    "JSON by POST": in_json(f"{BASE}.json", "q"),
    "CSV": in_address(f"{BASE}.csv", "q"),
    "form of private queries": in_form(BASE, "q"),
    "table": in_address("/notes/memories", "_hybrid"),
    "SQL": in_sql("select hybrid_search(:p)"),
    "memories": in_json(f"{BASE}/memories.json", "text"),
    "upload": in_files,
}
"""Each kind of place of the web where words come in, and the string in its most telling part."""


@pytest.mark.sampled(2)
@pytest.mark.once
@pytest.mark.parametrize("surface", SURFACES)
async def test_each_surface_takes_or_refuses_all_of_them(
    filled: Filled, serve: Serve, capsys: pytest.CaptureFixture[str], surface: str
) -> None:
    place, private = SURFACES[surface], surface.endswith("private queries")
    options = {"key-file": str(filled.key_file), "allow": ALLOW, "private-queries": private}
    root = (await serve(filled.path, options={"notes": options})).by("root")
    capsys.readouterr()
    seen: Counter[int] = Counter()
    for text in strings(STRINGS):
        answer = await answered(root, place(text), text)
        if answer.status_code == 303:  # on to the address that names a private query
            assert "asked=" in answer.headers["location"] or not text, text
            answer = await answered(root, Sent("GET", answer.headers["location"]), text)
        elif surface == "upload" and answer.status_code == 202:
            await imported(root, answer.json()["job"], text)
        seen[answer.status_code] += 1
    assert set(seen) <= {200, 201, 202, 400}, seen
    assert seen.total() == STRINGS
    assert seen.total() - seen[400] > STRINGS // 2, seen
    assert "datasette-hybrid:" not in capsys.readouterr().err  # what report_fault says
    found = (await root.get(f".json?q={quote(PHRASE)}")).json()
    assert [row["id"] for row in found["rows"]] == [ONE]


async def imported(root: Served, job: str, text: str) -> None:
    """Wait until an import is over; it says what came in, and which files did not."""
    until = time.monotonic() + PATIENCE
    while (reported := (await root.get(f"{BASE}/import/{job}.json")).json())["state"] == "running":
        assert time.monotonic() < until, text
        await asyncio.sleep(0.002)
    assert (reported["state"], reported["error"]) == ("done", None), text
    assert reported["imported"] + len(reported["failures"]) + len(reported["skips"]) >= 3, (
        reported,
        text,
    )
