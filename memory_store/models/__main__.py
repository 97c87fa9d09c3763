"""``python -m memory_store.models NAME``: put a reranker on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from memory_store.errors import MemoryStoreError, ModelUnavailableError
from memory_store.models.archives import fetch_reranker, install_reranker
from memory_store.models.reranker import DEFAULT_RERANKER


@click.command()
@click.argument("name", default=DEFAULT_RERANKER)
@click.option("--archive", type=click.Path(path_type=Path), help="A zip that is already here.")
@click.option("--sha256", help="Refuse an archive with another checksum.")
def main(name: str, archive: Path | None, sha256: str | None) -> None:
    """Download a FlashRank cross-encoder, or install one from --archive.

    Example: python -m memory_store.models ms-marco-MiniLM-L-12-v2
    """
    try:
        if archive is None:
            folder, digest = fetch_reranker(name, sha256=sha256)
        else:
            folder, digest = install_reranker(name, archive, sha256=sha256)
    except ModelUnavailableError as error:
        raise click.ClickException(f"{error} Try: {error.remedy}") from error
    except MemoryStoreError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{folder}\nsha256 {digest}")


if __name__ == "__main__":
    main()
