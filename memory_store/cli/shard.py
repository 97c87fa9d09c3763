"""``shard``: serve a part of a vault's index to the nodes that search it.

Boundary: opens the vault by its operator's key, as every command does. The nodes are known by
certificates; no key travels.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import with_store
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=VaultCommand)
@database_argument
@click.argument("part", metavar="NUMBER/COUNT")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where the nodes reach it")
@click.option("--certificate", type=FILE, required=True, help="This node's certificate (PEM)")
@click.option("--private-key", type=FILE, required=True, help="The key of that certificate (PEM)")
@click.option(
    "--peer",
    "peers",
    type=FILE,
    required=True,
    multiple=True,
    help="The certificate of a node that may ask; repeat it for more",
)
@with_store
def shard(
    store: MemoryStore,
    part: str,
    listen: str,
    certificate: Path,
    private_key: Path,
    peers: tuple[Path, ...],
) -> None:
    """Hold a part of the vault's index for nodes that search it. Runs until Ctrl-C.

    \b
    memory-store shard postgresql://ann@db.example/work 1/2 --listen 10.0.0.2:7411 \\
        --certificate shard1.pem --private-key shard1.key --peer node.pem

    For a vault whose index is larger than one machine's memory. The node that you search names
    its shards in a file: see "Shards" in the documentation. All other callers are refused.
    """
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise BadInputError(f"part: {part!r}: write it as 1/2, the first shard of two", "part")
    server = store.serve_shard(listen, (int(number), int(count)), certificate, private_key, peers)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server.start()
    click.echo(
        f"Shard {part} answers at {listen} (port {server.port}). Stop with Ctrl-C.", err=True
    )
    try:
        server.wait()
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
    finally:
        server.stop()
