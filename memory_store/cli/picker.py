"""``memory-store search -i``: results change while you type; a key opens the one you want.

Boundary: shows what the search shows, on the terminal's other screen, which is cleared at the end.
What you type is kept in no history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from memory_store.cli.terminal import bar, memories, printable_line, shortened
from memory_store.errors import MemoryStoreError, ModelUnavailableError

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings

    from memory_store.records import SearchResponse, SearchResult

PAUSE = 0.15  # seconds without a key before a search begins
HELP = "↓ ↑ choose · Enter shows it · Ctrl-E opens your editor · Esc leaves"
STYLE = {"chosen": "reverse", "mark": "bold", "quiet": "#888888", "wrong": "bold"}

Search = Callable[[str], "SearchResponse"]


class Picked(NamedTuple):
    """The memory that was chosen, and whether it is to be edited."""

    id: str
    edit: bool


class State(Struct):
    """What is on the screen: the last answer, or why there is none, and the place in it."""

    response: SearchResponse | None = None
    refusal: str = ""
    at: int = 0
    asked: int = 0

    @property
    def rows(self) -> tuple[SearchResult, ...]:
        return self.response.rows if self.response else ()


def pick(search: Search, words: str) -> Picked | None:
    """The memory that is chosen at the terminal; ``None`` when it is left without one.

    ``search`` answers a query; it is called in a thread, one query after the other. Raises
    ModelUnavailableError without the library.
    """
    check_library()
    return _application(search, words).run()


def check_library() -> None:
    """Raises ModelUnavailableError where the library is not installed."""
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        raise ModelUnavailableError(
            "search -i needs the package prompt_toolkit",
            "pip install 'datasette-hybrid[interactive]'",
        ) from None


def _application(search: Search, words: str) -> Application[Picked | None]:
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.document import Document
    from prompt_toolkit.layout.containers import HSplit, Window
    from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
    from prompt_toolkit.layout.layout import Layout
    from prompt_toolkit.layout.processors import BeforeInput
    from prompt_toolkit.styles import Style

    state, turn = State(), asyncio.Lock()

    async def ask(number: int) -> None:
        await asyncio.sleep(PAUSE)
        async with turn:  # one search at a time, and none for words that have changed meanwhile
            if number != state.asked:
                return
            query = box.text.strip()
            try:
                answer = await asyncio.to_thread(search, query) if query else None
                refusal = ""
            except MemoryStoreError as error:
                answer, refusal = None, str(error)
            if number == state.asked:
                state.response, state.refusal, state.at = answer, refusal, 0
                application.invalidate()

    def changed(_: Buffer) -> None:
        state.asked += 1
        application.create_background_task(ask(state.asked))

    box = Buffer(document=Document(words), multiline=False, on_text_changed=changed)
    shown = FormattedTextControl(partial(_results, state))
    part = FormattedTextControl(partial(_part, state))
    foot = FormattedTextControl(lambda: [("class:quiet", _foot(state))])
    top = Window(BufferControl(box, input_processors=[BeforeInput("Search: ")]), height=1)
    rows = HSplit(
        [
            top,
            Window(shown),
            Window(part, height=6, wrap_lines=True),
            Window(foot, height=1),
        ]
    )
    application: Application[Picked | None] = Application(
        Layout(rows, focused_element=top),
        key_bindings=_keys(state),
        full_screen=True,
        style=Style.from_dict(STYLE),
    )
    if words:
        application.pre_run_callables.append(lambda: changed(box))
    return application


def _keys(state: State) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    def move(by: int, event: KeyPressEvent) -> None:
        state.at = max(0, min(len(state.rows) - 1, state.at + by))

    def leave(edit: bool, event: KeyPressEvent) -> None:
        if state.rows:
            event.app.exit(result=Picked(state.rows[state.at].id, edit))

    for names, by in ((("down", "c-n"), 1), (("up", "c-p"), -1)):
        for name in names:
            keys.add(name)(partial(move, by))
    keys.add("enter")(partial(leave, False))
    keys.add("c-e")(partial(leave, True))
    for name in ("escape", "c-c", "c-d"):
        keys.add(name, eager=True)(lambda event: event.app.exit(result=None))
    return keys


def _results(state: State) -> StyleAndTextTuples:
    from prompt_toolkit.application import get_app

    from memory_store.cli.answers import title_of

    if state.refusal:
        return [("class:wrong", printable_line(state.refusal))]
    if state.response is not None and not state.rows:
        return [("", "Nothing found.")]
    room, lines = get_app().output.get_size().columns, list[tuple[str, str]]()
    for place, row in enumerate(state.rows):
        score = round(row.score * 100)
        line = shortened(f"{row.rank:>2}  {bar(row.score)} {score:>3}  {title_of(row)}", room)
        lines.append(("class:chosen" if place == state.at else "", line + "\n"))
    return [*lines]


def _part(state: State) -> StyleAndTextTuples:
    from memory_store.cli.answers import preview_words

    if not state.rows:
        return []
    words = preview_words(state.rows[state.at])
    return [("class:mark" if word.highlighted else "", word.text + " ") for word in words]


def _foot(state: State) -> str:
    response = state.response
    opened = f"{response.opened:,} of {memories(response.total)} opened · " if response else ""
    return f"{opened}{HELP}"
