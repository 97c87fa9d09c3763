"""The node that is searched: asks all shards at once, and answers for none that is away.

Boundary: a shard is taken for one only by the key of the certificate that is named for it, which
gRPC lets vouch for another certificate, too. An answer is checked before it is used. A shard that
does not answer is an error that names it: no search is ever answered from a part of the vault as if
it were all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from msgspec import Struct

from memory_store.addresses import vault_path
from memory_store.errors import (
    AwayError,
    BadInputError,
    ExtraMissingError,
    MemoryStoreError,
    SupersededError,
)
from memory_store.index.shard import MOST_SHARDS, Spread, moment
from memory_store.index.shard_questions import AnyQuestion, Columns
from memory_store.index.snapshot import Snapshot
from memory_store.shards.certificates import Identity, read_certificate, read_identity
from memory_store.shards.wire import (
    METHOD,
    MOST_ANSWERED,
    MOST_ASKED,
    NO_GRPC,
    SECONDS,
    SERVICE,
    Asked,
    decoded_answer,
    encoded,
)

try:
    import grpc
except ImportError:
    raise ExtraMissingError(NO_GRPC) from None

MOST_BYTES = 65_536


class Shard(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a shard listens (HOST:PORT), and the file of its certificate."""

    address: str
    certificate: str


class ShardsFile(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The file that names the shards of a ``vault``, and this node's certificate and key."""

    vault: str
    certificate: str
    private_key: str
    shards: tuple[Shard, ...]


def shards_of(file: Path, vault: Path) -> Spread | None:
    """An index on the shards that a file names for a vault; ``None`` where it is about another one.

    Raises BadInputError that names what is wrong, ExtraMissingError without gRPC.
    """
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadInputError(f"{file}: larger than {MOST_BYTES:,} bytes", "shards")
        named = msgspec.convert(yaml.safe_load(file.read_text("utf-8")), ShardsFile)
    except OSError as error:
        raise BadInputError(f"{file}: {error.strerror}", "shards") from None
    except (msgspec.ValidationError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise BadInputError(f"{file}: {said}", "shards") from None
    if vault_path(named.vault).resolve() != vault.resolve():
        return None
    if not 1 <= len(named.shards) <= MOST_SHARDS:
        raise BadInputError(f"{file}: shards: name 1 to {MOST_SHARDS}", "shards")
    folder = file.parent
    own = read_identity(folder / named.certificate, folder / named.private_key)
    shards = [(one.address, read_certificate(folder / one.certificate)) for one in named.shards]
    return Spread(RemoteShards(own, shards))


class RemoteShards:
    """A :class:`memory_store.index.shard_questions.Shards` over gRPC."""

    def __init__(self, identity: Identity, shards: Sequence[tuple[str, bytes]]) -> None:
        """``shards``: (HOST:PORT, certificate), in the order of their numbers."""
        options = [
            ("grpc.max_send_message_length", MOST_ASKED),
            ("grpc.max_receive_message_length", MOST_ANSWERED),
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        self._channels = [
            grpc.secure_channel(
                address,
                grpc.ssl_channel_credentials(certificate, identity.key, identity.certificate),
                options,
            )
            for address, certificate in shards
        ]
        self._calls = [one.unary_unary(f"/{SERVICE}/{METHOD}") for one in self._channels]

    def ask(self, snapshot: Snapshot, question: AnyQuestion) -> Columns:
        """See :meth:`memory_store.index.shard_questions.Shards.ask`."""
        count, collections, at = len(self._calls), snapshot.collections, moment(snapshot)
        asked = [Asked(at, collections, n + 1, count, question) for n in range(count)]
        running = [
            call.future(encoded(one), timeout=SECONDS)
            for call, one in zip(self._calls, asked, strict=True)
        ]
        try:
            answers = [
                self._answer(number, one, question, snapshot.size)
                for number, one in enumerate(running)
            ]
        finally:
            for one in running:
                one.cancel()
        return tuple(map(_joined, zip(*answers, strict=True)))

    def close(self) -> None:
        """Hang up."""
        for channel in self._channels:
            channel.close()

    def _answer(self, number: int, running: Any, question: AnyQuestion, size: int) -> Columns:
        name = f"shard {number + 1} of {len(self._calls)}"  # no page names a host
        try:
            return decoded_answer(question, running.result(), size)
        except grpc.FutureCancelledError:
            raise AwayError(f"{name} was hung up") from None
        except grpc.RpcError as error:
            code, said = error.code(), error.details()
        except ValueError:
            raise AwayError(f"{name} gives answers that do not fit: another version?") from None
        if code.name in _SAID:
            raise _SAID[code.name](f"{name} {said}")
        raise AwayError(
            f"{name} is away ({code.name.lower().replace('_', ' ')}): nothing was found"
        )


def _superseded(said: str) -> SupersededError:
    return SupersededError(f"{said}: the index is being written too often to be searched")


_SAID: Mapping[str, Callable[[str], MemoryStoreError]] = {
    "FAILED_PRECONDITION": _superseded,
    "PERMISSION_DENIED": AwayError,
    "INVALID_ARGUMENT": AwayError,
    "ABORTED": AwayError,
}


def _joined(columns: tuple[Any, ...]) -> Any:
    wide = max((one.shape[1] for one in columns if one.ndim == 2), default=0)
    if wide:
        columns = tuple(one if len(one) else np.zeros((0, wide), one.dtype) for one in columns)
    return np.concatenate(columns)
