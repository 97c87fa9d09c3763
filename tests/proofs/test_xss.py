"""Three hundred scripts in every text of a vault and every field of a page: a browser runs none.

A real Chromium opens every page while a sentinel watches: what the scripts would set, dialogs,
violations of the content security policy (nothing may even try), requests to elsewhere, attributes
and addresses that would run something once they are touched.
"""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from counts import FULL, a_third_of, counted
from plugin.browsing import MARKS, PATIENCE, another_page
from plugin.conftest import Filled
from private import private_below
from scripts import FOR_OTHER_READERS, PAYLOADS
from servers import ROOT, Server, served_process

from memory_store.records import OPTION_NAMES, MemoryDraft
from memory_store.store import MemoryStore

pytestmark = MARKS

ONE_BY_ONE = PAYLOADS[:: 1 if FULL else len(PAYLOADS) // counted(300)]
"""Those that get a page of their own."""
TOGETHER = PAYLOADS[:: 1 if FULL else 5]
"""Those that share pages."""
SHOWN = PAYLOADS[:: 1 if FULL else 10]
"""Those that the control shows as they are."""
COLLECTIONS = 12  # with a script for a name
HOME = "/notes/-/hybrid"

WATCH = """
(() => {
  const seen = window.__seen = [];
  Object.defineProperty(window, '__pwned', { set(value) { seen.push('a script ran') } });
  for (const name of ['alert', 'confirm', 'prompt', 'print', 'open'])
    window[name] = () => { seen.push(name) };
  document.addEventListener('securitypolicyviolation', (event) => {
    seen.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`) });
})()
"""
TOUCHED = """
() => {
  const bad = [...window.__seen];
  for (const element of document.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      if ((name.startsWith('on') || name === 'srcdoc' || element.httpEquiv)
          && value.includes('__pwned'))
        bad.push(`${element.tagName} has ${name}`);
      if (['href', 'src', 'action', 'formaction', 'data', 'xlink:href'].includes(name)
          && /^[\\s\\x00-\\x1f]*(javascript|vbscript|data):/i
            .test(value.replace(/[\\t\\n\\r]/g, '')))  // as browsers read addresses
        bad.push(`${element.tagName} leads to ${value}`);
    }
  }
  for (const name of ['iframe', 'object', 'embed', 'base', 'marquee', 'math', 'video', 'animate'])
    if (document.querySelector(name)) bad.push(`there is a ${name}`);
  for (const details of document.querySelectorAll('details')) details.open = true;
  for (const field of document.querySelectorAll('input, textarea, select, a')) {
    field.dispatchEvent(new MouseEvent('mouseover', { bubbles: true })); field.focus();
  }
  return [...new Set([...bad, ...window.__seen])];
}
"""


@dataclass
class Watched:
    """A page whose every step is watched."""

    page: Any
    server: Server
    noticed: list[str] = field(default_factory=list)
    pages: int = 0

    def goes(self, path: str) -> None:
        """Open a path below the server's address; fails when anything runs or tries to."""
        self.page.goto(self.server.address + path)
        self.settled(path)

    def asked(self, dialog: Any) -> None:
        """A dialog: that of a form which would lose what was typed is our own."""
        if dialog.type != "beforeunload":
            self.noticed.append(f"a dialog: {dialog.message}")
        dialog.accept()

    def settled(self, what: str) -> None:
        bad = [*self.page.evaluate(TOUCHED), *self.noticed]
        assert bad == [], (what[:300], bad)
        self.pages += 1


@pytest.fixture(scope="module")
def server(
    original: Filled, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server over a vault where each script is in every part of a memory."""
    folder = tmp_path_factory.mktemp("scripts")
    vault = folder / "vaults" / "notes.db"
    vault.parent.mkdir()
    shutil.copy(original.path, vault)
    filled = Filled(vault, original.key_file, original.recovery_code)
    with private_below(folder) as environment:
        environment.setenv("MEMORY_STORE_MODEL", str(tiny_model))
        with MemoryStore.open(vault, key_file=filled.key_file) as store:
            for number, name in enumerate(PAYLOADS[:COLLECTIONS]):
                store.collections.create(f"{number} {name}"[:200])
            names = [one.name for one in store.collections.list()]
            store.add_many(
                MemoryDraft(
                    f"poison number{number} {script}\n\n![[poison {number - 1}]]\n\n"
                    f"[[poison {number - 1}|{script}]] [[{script}]]",
                    title=f"{number} {script}",
                    topics=(script, f"number{number}"),
                    metadata={
                        script: [script, {script: script}],
                        "url": script,
                        "aliases": [f"poison {number}"],
                    },
                    source=script,
                    ref=f"{script}/{number}",
                    collection=names[number % len(names)],
                    type="task" if number % 2 else "note",
                )
                for number, script in enumerate(TOGETHER)
            )
        with served_process(filled, folder) as running:
            yield running


@pytest.fixture(scope="module")
def watched(server: Server, browser: Any) -> Iterator[Watched]:
    context = browser.new_context(extra_http_headers=ROOT, viewport={"width": 1280, "height": 900})
    context.add_init_script(WATCH)
    context.set_default_timeout(PATIENCE * 1_000)
    page = context.new_page()
    watching = Watched(page, server)
    page.on("dialog", watching.asked)
    page.on(
        "request",
        lambda one: (
            one.url.startswith((server.address, "data:"))
            or watching.noticed.append(f"a request to {one.url}")
        ),
    )
    yield watching
    context.close()


def ids(server: Server) -> list[str]:
    """Every memory's id."""
    found: list[str] = []
    path: str | None = f"{server.address}{HOME}/memories.json?_size=max"
    while path:
        answer = asked(path)
        found += [row["id"] for row in answer["rows"]]
        path = answer["next_url"]
    return found


def asked(address: str, value: Any = None, method: str = "GET") -> Any:
    body = None if value is None else json.dumps(value).encode()
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, body, {**ROOT, **kind}, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def spread(values: Sequence[str]) -> list[str]:
    """As many of ``values`` as there are pages for single scripts."""
    return list(values[:: max(1, len(values) // len(ONE_BY_ONE))])


PLACES = (  # attributes first: a comment that nothing ends hides the rest
    *("<p {}>x</p>", '<p title="{}">x</p>', "<p title='{}'>x</p>", '<a href="{}">x</a>'),
    *("<script>var a = '{}'</script>", '<script>var a = {{"a": "{}"}}</script>'),
    *("<script>var a = `{}`</script>", "<style>p {{ color: '{}' }}</style>"),
    *("<p>{}</p>", "<pre><code>{}</code></pre>", "<template>{}</template>", "<mark>{}</mark>"),
    *("<textarea>{}</textarea>", "<select><option>{}</option></select>", "<!-- {} -->"),
    *("<noscript>{}</noscript>", "<form><button>{}</button></form>", "<title>{}</title>"),
)
"""Where a text stands in a page: each way out leads out of one of them."""


def test_the_sentinel_sees_what_runs(watched: Watched) -> None:
    """The positive control: on a page that shows them as they are nearly all do harm.

    The others need another reader, such as a template of a server, and are named.
    """
    noticed, ran = set(), set()
    for script in SHOWN:
        watched.page.goto("about:blank")
        watched.page.set_content("".join(place.format(script) for place in PLACES))
        seen = watched.page.evaluate(TOUCHED)
        noticed |= {script} if seen else set()
        ran |= {script} if "a script ran" in seen else set()
    assert set(SHOWN) - noticed <= FOR_OTHER_READERS
    assert len(ran) > len(SHOWN) // 2  # the others wait to be touched
    watched.page.goto("about:blank")  # nothing of them goes on
    watched.noticed.clear()


def test_pages_of_many_memories(watched: Watched) -> None:
    found = f"{HOME}?q=poison+number1&deep=1&limit=100&mode=keyword"
    watched.goes(HOME)
    watched.goes(found)
    assert watched.page.locator(".hy-result").count() >= min(50, len(TOGETHER))
    for path in (f"{found}&explain=1", f"{found}&narrow=type:task", "/-/hybrid?q=poison"):
        watched.goes(path)
    for path in ("/notes/memories?_size=max", "/notes/memories?_hybrid=poison", "/notes", "/"):
        watched.goes(path)
    for path in (f"{HOME}/collections", f"{HOME}/audit", f"{HOME}/new", f"{HOME}/import"):
        watched.goes(path)
    first = asked(watched.server.address + found.replace("?", ".json?").replace("100", "10"))
    watched.goes(f"{found}&{urlencode({'continue': first['next']})}")


def test_pages_of_one_memory(watched: Watched) -> None:
    for number, memory in enumerate(spread(ids(watched.server))):
        ways = ("", "?q=poison", "/edit", "/delete")
        watched.goes(f"{HOME}/memories/{memory}{ways[number % len(ways)]}")
        if number % 5 == 0:
            watched.goes(f"/notes/memories/{memory}")


def test_queries_options_and_their_refusals(watched: Watched) -> None:
    names = [name for name in OPTION_NAMES if name not in ("reranker", "expander")]
    for number, script in enumerate(ONE_BY_ONE):
        name, text = names[number % len(names)], quote(script)
        watched.goes(f"{HOME}?q={text}&{name}={text}&explain=1")
        watched.goes(f"{HOME}?q={text}&mode={('keyword', 'literal', 'vector')[number % 3]}")
        other = (
            f"/-/hybrid?q={text}&topic={text}",
            f"/notes/memories?_hybrid={text}&_hybrid_{name}={text}",
            f"{HOME}/audit?who={text}&action={text}",
            f"{HOME}/collections?{name}={text}",
            f"{HOME}/new?title={text}&text={text}&topics={text}",
            f"{HOME}/import?topics={text}&collection={text}",
            f"{HOME}/memories/{quote(script, safe='')}",
            f"{HOME}/import/{quote(script, safe='')}",
            f"{HOME}/{quote(script, safe='')}",
            f"{HOME}/unlock?next={text}&q={text}",
            f"{HOME}.json?q={text}",
            f"{HOME}.json?{name}={text}&mode={text}",
        )
        watched.goes(other[number % len(other)])


def test_forms_that_are_refused_and_shown_again(watched: Watched) -> None:
    page = watched.page
    for script in ONE_BY_ONE[::2]:
        watched.goes(f"{HOME}/new")
        page.locator("[name=text]").fill(script)
        page.locator("[name=title]").fill(script * 100)  # too long a title
        page.locator("[name=topics]").fill(script)
        with another_page(page):
            page.locator("form:has([name=text]) button:not([formaction])").first.click()
        watched.settled(f"a new memory: {script}")
        assert page.locator("[name=text]").count(), page.inner_text("body")[:500]


def test_both_sides_of_a_conflict(watched: Watched) -> None:
    page = watched.page
    for memory, script in zip(spread(ids(watched.server))[::3], ONE_BY_ONE, strict=False):
        watched.goes(f"{HOME}/memories/{memory}/edit")
        address = f"{watched.server.address}{HOME}/memories/{memory}.json"
        version = asked(address)["rows"][0]["version"]
        asked(address, {"version": version, "text": f"theirs {script}\n{script}"}, "PATCH")
        page.locator("[name=text]").fill(f"mine {script}\n\n{script}")
        with another_page(page):
            page.locator("form:has([name=text]) button:not([formaction])").first.click()
        watched.settled(f"a conflict: {script}")
        assert "theirs" in page.inner_text("body")


@pytest.mark.once
def test_an_import_that_names_its_files(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    for script in a_third_of(ONE_BY_ONE[::3]):
        watched.goes(f"{HOME}/import")
        files = [
            {"name": f"{script}.md", "mimeType": "text/plain", "buffer": b"---\na: [\n---\n"},
            {"name": f"{script}.exe", "mimeType": "text/plain", "buffer": script.encode()},
            {"name": "rows.csv", "mimeType": "text/csv", "buffer": f"{script}\n1\n".encode()},
        ]
        page.locator("input[type=file]").first.set_input_files(files)
        page.locator("[name=topics]").fill(script.replace(",", ""))
        page.locator("form:has(input[type=file]) button").first.click()
        page.wait_for_url("**/import/*")
        # until then the page asks how far it is, and at the end comes again by itself
        page.get_by_role("heading", name=re.compile("^Import(ed| failed| stopped)")).wait_for()
        page.wait_for_load_state()
        watched.settled(f"an import: {script}")
        page.reload()
        watched.settled(f"an import: {script}")
