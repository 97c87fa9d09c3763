"""The archives in which rerankers come: what is taken out of them, and what is not.

Boundary: an archive is hostile until it has been read. Only flat files under the model's own
name are taken out of it, up to a size, into a folder that is new.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from memory_store.errors import BadInputError

MAX_BYTES = 2 * 1024**3  # of one archive, packed or unpacked; the largest of FlashRank's is 110 MB


def unpack(archive: Path, name: str, folder: Path, only: Collection[str] = ()) -> None:
    """Copy the files ``name/*`` of ``archive`` to ``folder``: those in ``only``, or all.

    Everything else in it is ignored. Raises :class:`BadInputError` for what is no readable zip.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            files = [(m, PurePosixPath(m.filename)) for m in packed.infolist() if not m.is_dir()]
            chosen = [
                (member, path.name)
                for member, path in files
                if path.parts[:-1] == (name,) and (not only or path.name in only)
            ]
            if sum(member.file_size for member, _ in chosen) > MAX_BYTES:
                raise BadInputError(f"{archive} unpacks to more than a model can be.", "archive")
            for member, file in chosen:
                with packed.open(member) as source, (folder / file).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except OSError as error:
        raise BadInputError(f"{archive} cannot be read: {error.strerror}.", "archive") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise BadInputError(f"{archive} is not a readable zip file: {error}", "archive") from error
