"""A shard: serves its part of an opened vault's index to the nodes whose certificates it knows.

Boundary: default deny. TLS takes no other certificates than those named, and each call is held
against them once more, so that none that they signed gets in. What is refused says why in words
that tell nothing of the vault; nothing is logged.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memory_store.crypto.certificates import fingerprints
from memory_store.errors import BadInputError, ExtraMissingError, LockedError, MemoryStoreError
from memory_store.index.shard import Part, answer, moment
from memory_store.index.snapshot import Snapshot
from memory_store.shards.certificates import Identity
from memory_store.shards.wire import (
    METHOD,
    MOST_ANSWERED,
    MOST_ASKED,
    NO_GRPC,
    SERVICE,
    Asked,
    answered,
    decoded_question,
    encoded,
)

try:
    import grpc
except ImportError:
    raise ExtraMissingError(NO_GRPC) from None

THREADS = 4  # questions answered at once: NumPy lets them run side by side
WAITING = 64  # questions that may wait; more are refused
Refusal = tuple[grpc.StatusCode, str]
STRANGER: Refusal = (
    grpc.StatusCode.PERMISSION_DENIED,
    "refuses this node: its certificate is not one of the peers",
)
BOUNDLESS: Refusal = (
    grpc.StatusCode.INVALID_ARGUMENT,
    "refuses this question: it is of more words than a query may have",
)
MOMENTS = 3  # that are remembered: a question may come from a node that is a write behind


class ShardServer:
    """Serves until it is stopped. ``newest`` gives the index of the vault as last committed."""

    def __init__(
        self,
        newest: Callable[[], Snapshot],
        part: Part,
        identity: Identity,
        peers: Collection[bytes],
        listen: str,
    ) -> None:
        """``peers``: the certificates (PEM) of the nodes that may ask. ``listen``: HOST:PORT.

        Raises BadInputError where nothing can listen there.
        """
        self._newest, self._part = newest, part
        self._pins = fingerprints(peers)
        self._moments: OrderedDict[bytes, Snapshot] = OrderedDict()
        self._lock = threading.Lock()
        credentials = grpc.ssl_server_credentials(
            [(identity.key, identity.certificate)], b"\n".join(peers), require_client_auth=True
        )
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix="shard"),
            options=[
                ("grpc.max_receive_message_length", MOST_ASKED),
                ("grpc.max_send_message_length", MOST_ANSWERED),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=THREADS + WAITING,
        )
        handler = grpc.unary_unary_rpc_method_handler(self._answered)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        try:
            self.port: int = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise BadInputError(
                f"{listen}: nothing can listen there: is the port free?", "listen"
            ) from None

    def start(self) -> None:
        """Begin to answer, in threads of its own."""
        self._server.start()

    def wait(self) -> None:
        """Until it is stopped."""
        self._server.wait_for_termination()

    def stop(self) -> None:
        """End at once: who waits for an answer gets none."""
        self._server.stop(None).wait()
        self._moments.clear()

    def _answered(self, data: bytes, call: Any) -> bytes:
        known = self._pins & fingerprints(call.auth_context().get("x509_pem_cert", ()))
        said = self._answer(data) if known else STRANGER
        if isinstance(said, bytes):
            return said
        call.abort(*said)
        raise AssertionError("abort raises")

    def _answer(self, data: bytes) -> bytes | Refusal:
        try:
            asked = decoded_question(data)
            if (asked.number, asked.count) != (self._part.number, self._part.count):
                mine = f"refuses this node: it is shard {self._part.number} of {self._part.count}"
                return grpc.StatusCode.INVALID_ARGUMENT, mine
            if asked.question.is_boundless:
                return BOUNDLESS
            snapshot = self._at(asked)
            if snapshot is None:
                return grpc.StatusCode.FAILED_PRECONDITION, "is at another moment of the vault"
            found = answer(asked.question, snapshot, self._part)
            return encoded(answered(asked.question, found))
        except (BadInputError, ValueError, OverflowError):
            said = "refuses this question: is it of another version?"
            return grpc.StatusCode.INVALID_ARGUMENT, said
        except LockedError:
            return grpc.StatusCode.ABORTED, "is locked"
        except MemoryStoreError:
            return grpc.StatusCode.ABORTED, "cannot read the vault"
        except Exception:  # noqa: BLE001 - gRPC would send its words to the node
            return grpc.StatusCode.ABORTED, "could not answer: something went wrong inside of it"

    def _at(self, asked: Asked) -> Snapshot | None:
        """The part of the index that a question is about: the newest, or one of before."""
        snapshot = self._newest()
        with self._lock:
            self._moments[moment(snapshot)] = snapshot
            while len(self._moments) > MOMENTS:
                self._moments.popitem(last=False)
            held = [*reversed(self._moments.values())]
        for one in held:
            limited = one.limited_to(asked.collections)
            if moment(limited) == asked.moment:
                return limited
        return None
