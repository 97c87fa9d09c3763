"""``memory-store ask``: a question, answered in sentences by a language model, with its sources.

Boundary: sends the text of the memories it finds to the model, which the user names here or has
made ``llm``'s default; the model's name is part of the output. What it writes is untrusted text
like any note.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.answers import opened_line, print_answer, title_of
from memory_store.cli.failures import said_plainly
from memory_store.cli.kept import Found, found_by_keeper, hand_over
from memory_store.cli.options import (
    SCOPE,
    json_option,
    request_option,
    request_options,
    text_or_stdin,
    vault_command,
)
from memory_store.cli.rows import write_json
from memory_store.cli.search import QueryCommand
from memory_store.cli.terminal import (
    DIM,
    SHORT_ID,
    colour_wanted,
    is_elsewhere,
    printable,
    printable_line,
    styled,
)
from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.records import ANSWER_BUDGET, ANSWER_SOURCES, Answer, SearchResponse

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

LOADING_SECONDS = 60.0  # the plugins of llm, and a local model of some gigabytes
INSTEAD = "There will be no answer. These are the memories found:"


MISSING = "memory-store ask: why there will be no answer"


class AskCommand(QueryCommand):
    """Says that there is no language model before it asks for a passphrase, and searches."""

    def invoke(self, ctx: click.Context) -> Any:
        if is_elsewhere():  # the model is of the process that asked
            return super().invoke(ctx)
        missing = ctx.meta[MISSING] = _missing(ctx.params["model"])
        if missing is not None:
            click.echo(f"Error: {printable_line(said_plainly(missing) or '')}\n{INSTEAD}", err=True)
        given = ctx.params
        if (found := found_by_keeper(ctx)) is None:
            return super().invoke(ctx)
        _answer(found, given["model"], given["budget"], given["as_json"])
        return None


@vault_command(cls=AskCommand)
@click.argument("question", metavar="QUESTION...", nargs=-1, required=True)
@click.option("--model", metavar="MODEL", help="Language model (default: the default model of llm)")
@request_option("limit", default=ANSWER_SOURCES, help="How many memories to send, at most")
@request_option(
    "budget",
    default=ANSWER_BUDGET,
    show_default=True,
    help="Ceiling for the text that is sent: long memories are cut",
)
@request_options(*SCOPE, "recipe", "expander", "expand")
@json_option("Print the answer and its sources as one JSON object")
def ask(
    store: MemoryStore,
    question: tuple[str, ...],
    model: str | None,
    budget: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Answer a question out of your memories, with citations.

    The memories found are sent to a language model of the package llm. It may run on another
    machine: choose one that may read them.

    \b
    memory-store ask notes.db "when does the lease end?" --model MODEL
    memory-store ask notes.db "what did we decide on heating?" --type decision --json

    Without a model you are shown what to install, then the memories found, and the exit code is 1.
    QUESTION may be - for standard input.
    """
    words = " ".join(question)
    asked = text_or_stdin(words).strip() if words == "-" else words
    response = _found(store, asked, **options)
    sent = click.get_current_context().meta.get(MISSING) is None
    memories = store.found_again([row.id for row in response.rows]) if sent else ()
    found = Found(response, tuple(memories))
    if not hand_over(found):
        _answer(found, model, budget, as_json)


def _answer(found: Found, model: str | None, budget: int, as_json: bool) -> None:
    """Have the model answer, and print it; or print what was found, where there is none."""
    missing = click.get_current_context().meta[MISSING]
    response = found.response
    if missing is not None:
        if as_json:
            write_json({**response.as_dict(), "ok": False, "answer": None, "error": str(missing)})
        else:
            print_answer(response)
        click.get_current_context().exit(1)
    from memory_store.search.answer.cited_answer import answer

    streaming = not as_json and sys.stdout.isatty()
    try:
        said = answer(
            response,
            found.memories,
            model=model,
            budget=budget,
            on_text=_show_piece if streaming else None,
        )
    except ModelUnavailableError as error:
        if as_json:
            write_json({**response.as_dict(), "ok": False, "answer": None, "error": str(error)})
        else:
            print_answer(response)
        raise
    if as_json:
        write_json(said.as_dict())
    elif said.text is None:
        print_answer(response)  # says that nothing was found
    else:
        _print(said, shown=streaming)


def _missing(model: str | None) -> ModelUnavailableError | None:
    """Why there will be no answer, known before a search: no package, no such model, no key."""
    from memory_store.models.language_model import loadable

    try:
        loadable(model, seconds=LOADING_SECONDS)
    except ModelUnavailableError as error:
        return error
    return None


def _found(store: MemoryStore, question: str, **options: Any) -> SearchResponse:
    """The search for a question. What is wrong with its words is said of QUESTION, as typed."""
    try:
        return store.search(question, **options)
    except BadInputError as error:
        if error.parameter != "q":
            raise
        message = str(error).removeprefix("q: ").replace("the query", "the question")
        raise BadInputError(f"question: {message}", "question") from None


def _show_piece(piece: str) -> None:
    click.echo(printable(piece), nl=False)


def _print(answer: Answer, *, shown: bool) -> None:
    """The answer, unless it was shown as it came; the memories it cites; who wrote it."""
    colour = colour_wanted()
    click.echo("" if shown else printable(answer.text or ""))
    click.echo()
    titles = {row.id: title_of(row) for row in answer.search.rows}
    for one in answer.citations:
        facts = [one.created[:10], one.id[:SHORT_ID], one.ref or ""]
        facts_shown = "· " + " · ".join(printable_line(fact) for fact in facts if fact)
        title = printable_line(titles.get(one.id, one.title))
        click.echo(f"[{one.number}] {title} {styled(facts_shown, DIM, colour)}")
    if not answer.citations:
        click.echo(styled("It cites no memory: take it with care.", DIM, colour))
    if answer.removed:
        were = "citation {} was" if answer.removed == 1 else "citations {} were"
        made_up = f"{answer.removed} {were.format('of sources it was not given')} left out."
        click.echo(styled(made_up, DIM, colour))
    given = f"{printable_line(answer.model or '')} was sent {len(answer.sources)} of them"
    click.echo("\n" + styled(f"{opened_line(answer.search)} · {given}", DIM, colour))
    for line in answer.search.remarks():
        click.echo(printable_line(line))
