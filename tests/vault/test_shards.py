"""A vault on shards answers as one process does, to the bit, or says which shard is away."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_store.errors import AwayError, BadInputError
from memory_store.records import MemoryDraft, SearchResponse
from memory_store.scopes import Scope
from memory_store.store import MemoryStore

grpc = pytest.importorskip("grpc", reason="the extra shards is not installed")
pytestmark = pytest.mark.once

SHARDS = 3
WORDS = ("pump", "garden", "boiler", "ledger", "tomatoes", "diary", "water", "invoice", "gate")
COLLECTIONS = ("work", "home", "diary")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for this machine that stands for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(local, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / f"{name}.pem", folder / f"{name}.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.touch(0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem, private


class Nodes:
    """One vault, opened whole, by each shard, and by a node that searches the shards."""

    def __init__(self, whole: MemoryStore, key_file: Path, folder: Path) -> None:
        self.whole, self.key_file, self.folder = whole, key_file, folder
        self.model = whole.embedder_name()
        self.own = certificate(folder, "node")
        self.certificates = [certificate(folder, f"shard{n}") for n in range(1, SHARDS + 1)]
        self.stores = [self.opened() for _ in self.certificates]
        self.servers = [
            store.serve_shard("localhost:0", (number, SHARDS), *pair, [self.own[0]])
            for number, (store, pair) in enumerate(
                zip(self.stores, self.certificates, strict=True), start=1
            )
        ]
        for server in self.servers:
            server.start()

    def opened(self) -> MemoryStore:
        return MemoryStore.open(self.whole.path, key_file=self.key_file, embedder=self.model)

    def file(self, own: tuple[Path, Path] | None = None, name: str = "shards.yaml") -> Path:
        """The file that names the shards."""
        pem, private = own or self.own
        file = self.folder / name
        ports = [server.port for server in self.servers]
        shards = [
            {"address": f"localhost:{port}", "certificate": f"shard{number}.pem"}
            for number, port in enumerate(ports, start=1)
        ]
        own_names = {"certificate": pem.name, "private-key": private.name}
        file.write_text(json.dumps({"vault": str(self.whole.path), **own_names, "shards": shards}))
        return file

    def node(self, monkeypatch: pytest.MonkeyPatch, **given: Any) -> MemoryStore:
        """A node that searches the shards."""
        monkeypatch.setenv("MEMORY_STORE_SHARDS", str(self.file(**given)))
        store = self.opened()
        monkeypatch.delenv("MEMORY_STORE_SHARDS")
        return store

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        for store in self.stores:
            store.lock()


def fill(store: MemoryStore) -> None:
    """Memories in three collections, one of them a conversation, some changed and deleted."""
    for name in COLLECTIONS:
        store.collections.create(name)
    drafts = []
    for n in range(90):
        words = [WORDS[(n * k + k * k) % len(WORDS)] for k in range(1, 6)]
        text = f"The {words[0]} {words[1]} near {words[2]}. " + " ".join(words[3:]) * (n % 4)
        made = MemoryDraft(
            text,
            title=f"{words[4]} {n}",
            collection=COLLECTIONS[n % 3],
            type=("note", "task", "fact")[n % 3],
            topics=(WORDS[n % len(WORDS)],) if n % 2 else (),
            created=f"2026-01-{1 + n // 30:02}T{n % 24:02}:{n % 60:02}:00Z",
        )
        drafts.append(made)
    ids = [one.id for one in store.add_many(drafts)]
    store.delete(ids[5])
    store.edit(ids[6], text="A pump that drips by the garden gate")


@pytest.fixture
def nodes(
    make_store: Callable[..., MemoryStore], key_file: Path, tmp_path: Path
) -> Iterator[Nodes]:
    store = make_store(profile="strict")  # whose vectors are compared by NumPy: to the bit
    fill(store)
    made = Nodes(store, key_file, tmp_path)
    yield made
    made.close()


def told(response: SearchResponse) -> list[tuple[Any, ...]]:
    """Everything that a search says of its rows."""
    rows = [(row.id, row.score, row.fusion_score, row.vector_score) for row in response.rows]
    ranks = [(row.keyword_rank, row.topic_rank, row.vector_rank) for row in response.rows]
    return [*rows, *ranks, response.counts, response.totals, response.topics, response.degraded]


QUERIES = st.lists(
    st.sampled_from([*WORDS, "drips", "unheard", '"garden gate"']), min_size=1, max_size=5
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["hybrid", "keyword", "vector"]),
        "recipe": st.sampled_from(["default", "gnosis", "qmd", "prx", "gno", "code"]),
        "limit": st.integers(1, 30),
        "collection": st.sampled_from(COLLECTIONS),
        "topic": st.sampled_from(WORDS),
        "type": st.sampled_from(["note", "task"]),
        "since": st.just("2026-01-02"),
        "explain": st.just(True),
    },
)


def test_every_search_is_answered_as_by_one_process(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = nodes.node(monkeypatch)

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(QUERIES, OPTIONS)
    def alike(words: list[str], options: dict[str, Any]) -> None:
        query = " ".join(words)
        assert told(node.search(query, **options)) == told(nodes.whole.search(query, **options))

    alike()
    node.lock()
