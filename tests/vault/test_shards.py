"""A vault on shards answers as one process does, to the bit, or says which shard is away."""

from __future__ import annotations

import datetime
import json
import os
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_process import python
from private import private_below

from memory_store.cli.backup import copy_vault
from memory_store.errors import AwayError, BadInputError, SupersededError
from memory_store.index import shard_questions as asked
from memory_store.index.shard import Part, answer, moment
from memory_store.index.shard_questions import AnyQuestion, Columns
from memory_store.index.snapshot import Snapshot
from memory_store.records import MemoryDraft, SearchResponse
from memory_store.records.request import MAX_QUERY_CHARACTERS
from memory_store.scopes import Scope
from memory_store.store import MemoryStore

pytest.importorskip("grpc", reason="the extra shards is not installed")

import grpc

from memory_store.shards.client import shards_of
from memory_store.shards.server import ShardServer
from memory_store.shards.wire import METHOD, SERVICE, Asked, answered, decoded_answer, encoded

pytestmark = pytest.mark.once

SHARDS = 3
WORDS = ("pump", "garden", "boiler", "ledger", "tomatoes", "diary", "water", "invoice", "gate")
COLLECTIONS = ("work", "home", "diary")
FAR = (99).to_bytes(4, "little")
ADVERSE = (
    asked.Nearest(b"\0" * 256, 10**9, None),
    asked.Nearest(b"\0" * 256, 5, zlib.compress(b"\0" * 10**6)),
    asked.Nearest(b"\0" * 256, 5, b"not deflated"),
    asked.Cosines(b"\0" * 256, FAR),
    asked.Vectors((-1).to_bytes(4, "little", signed=True), 64, first=True),
    asked.WindowCosines(b"\0" * 256, b"\0" * 4, b""),
    asked.WindowCosines(b"\0" * 256, b"\0" * 4, FAR),
    asked.WindowCosines(b"\0" * 256, b"\0" * 8, b"\0" * 8),  # the same one twice
    asked.Coverage(({},), None, (1, 2), ordinals=b""),
    object(),
)


def certificate(
    folder: Path, name: str, signed_by: tuple[Path, Path] | None = None, *, signs: bool = False
) -> tuple[Path, Path]:
    """A certificate for this machine that stands for itself, or is signed by another; its key.
    ``signs``: it says that it may sign others."""
    key = signer = ec.generate_private_key(ec.SECP256R1())
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    if signed_by is not None:
        issuer = x509.load_pem_x509_certificate(signed_by[0].read_bytes()).subject
        signer = serialization.load_pem_private_key(signed_by[1].read_bytes(), None)
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(local, critical=False)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
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
    """One vault, opened whole, by each shard, and by nodes that search the shards."""

    def __init__(self, whole: MemoryStore, key_file: Path, folder: Path) -> None:
        self.whole, self.key_file, self.folder = whole, key_file, folder
        self.model = whole.embedder_name()
        self.own = certificate(folder, "node")
        self.certificates = [certificate(folder, f"shard{n}") for n in range(1, SHARDS + 1)]
        self.stores = [self.opened() for _ in self.certificates]
        self.servers = [self.served(n, store) for n, store in enumerate(self.stores, start=1)]

    def opened(self) -> MemoryStore:
        return MemoryStore.open(self.whole.path, key_file=self.key_file, embedder=self.model)

    def served(self, number: int, store: MemoryStore) -> ShardServer:
        pair = self.certificates[number - 1]
        server = store.serve_shard("localhost:0", (number, SHARDS), *pair, [self.own[0]])
        server.start()
        return server

    def node(
        self,
        own: tuple[Path, Path] | None = None,
        ports: Mapping[int, int] = MappingProxyType({}),
        shown: Mapping[int, int] = MappingProxyType({}),
    ) -> MemoryStore:
        """A node that searches the shards: with another certificate, or where some shards are
        looked for at other ports, or expected to show the certificates of others."""
        pem, private = own or self.own
        shards = [
            {
                "address": f"localhost:{ports.get(number, server.port)}",
                "certificate": f"shard{shown.get(number, number)}.pem",
            }
            for number, server in enumerate(self.servers, start=1)
        ]
        meant = {"certificate": pem.name, "private-key": private.name}
        file = self.folder / "shards.yaml"
        file.write_text(json.dumps({"vault": str(self.whole.path), **meant, "shards": shards}))
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("MEMORY_STORE_SHARDS", str(file))
            return self.opened()

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


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    with private_below(folder):
        (folder / "vaults").mkdir()
        key, path = folder / "keys" / "notes.key", folder / "vaults" / "notes.db"
        store, _ = MemoryStore.create(  # strict: NumPy compares its vectors, to the bit
            path, key_file=key, embedder=str(tiny_model), profile="strict"
        )
        fill(store)
        made = Nodes(store, key, folder)
        yield made
        made.close()
        store.lock()


@pytest.fixture(scope="module")
def node(nodes: Nodes) -> Iterator[MemoryStore]:
    store = nodes.node()
    yield store
    store.lock()


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


def test_every_search_is_answered_as_by_one_process(nodes: Nodes, node: MemoryStore) -> None:

    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(QUERIES, OPTIONS)
    def alike(words: list[str], options: dict[str, Any]) -> None:
        query = " ".join(words)
        assert told(node.search(query, **options)) == told(nodes.whole.search(query, **options))

    alike()
    held = [store.search_context().snapshot for store in nodes.stores]
    everything = nodes.whole.search_context().snapshot
    assert sum(one.vectors for one in held) == everything.vectors
    assert all(0 < one.vectors < everything.vectors for one in held)
    with pytest.raises(BadInputError, match="words and vectors are on shards"):
        len(node.search_context().snapshot.parts[0].segment.terms)


def test_a_part_of_the_vault_has_the_scores_that_it_has_in_one_process(
    nodes: Nodes, node: MemoryStore
) -> None:
    scope = Scope.of([node.collections.find("home"), node.collections.find("diary")])
    for query in ("pump garden", '"garden gate"', "water -boiler"):
        parts = [store.limited_to(scope) for store in (node, nodes.whole)]
        assert told(parts[0].search(query)) == told(parts[1].search(query))


def test_what_others_write_is_found_at_the_next_search(nodes: Nodes, node: MemoryStore) -> None:
    node.search("weir")
    added = nodes.whole.add("The weir by the mill is closed")
    assert next(row.id for row in node.search("weir mill").rows) == added.id
    alike = [store.resembling("the weir by the mill is CLOSED") for store in (node, nodes.whole)]
    assert alike[0] == alike[1] == [(added.id, 1.0)]
    node.edit(added.id, text="The sluice by the mill is open")
    for store in (node, nodes.whole):
        assert [row.id for row in store.search("sluice", mode="keyword").rows] == [added.id]
        assert not store.search("weir", mode="keyword").rows


def test_a_shard_that_is_away_is_named_and_nothing_is_answered_from_the_others(
    nodes: Nodes,
) -> None:
    locked = nodes.opened()
    server = nodes.served(1, locked)
    locked.lock()
    with socket.socket() as unheard:
        unheard.bind(("localhost", 0))
        for number, port, said in (
            (1, server.port, "is locked"),
            (2, unheard.getsockname()[1], r"is away \(unavailable\)"),
            (3, nodes.servers[1].port, "is away"),  # that is shard 2, by its certificate
        ):
            node = nodes.node(ports={number: port})
            with pytest.raises(AwayError, match=f"shard {number} of 3 {said}") as raised:
                node.search("pump")
            assert "localhost" not in str(raised.value)
            node.lock()
    server.stop()


@pytest.mark.parametrize("signed", [False, True], ids=["unknown", "signed by a known one"])
def test_only_a_node_with_a_named_certificate_is_answered(nodes: Nodes, signed: bool) -> None:
    shown = certificate(nodes.folder, "stranger", nodes.own if signed else None)
    stranger = nodes.node(own=shown)
    with pytest.raises(AwayError, match="refuses this node" if signed else "is away"):
        stranger.search("pump")
    stranger.lock()


@pytest.mark.parametrize("kind", ["an older copy", "another vault"])
def test_a_shard_that_opened_something_else_is_named_and_never_answered_from(
    nodes: Nodes, tiny_model: Path, tmp_path: Path, kind: str
) -> None:
    node = nodes.node()
    if kind == "an older copy":
        place = tmp_path / "older.db"
        copy_vault(nodes.whole.path, place)
        nodes.whole.add("The weir was opened later")
        store = MemoryStore.open(place, key_file=nodes.key_file, embedder=nodes.model)
    else:
        key, place = tmp_path / "keys" / "other.key", tmp_path / "other.db"
        made, _ = MemoryStore.create(place, key_file=key, embedder=str(tiny_model))
        fill(made)
        made.lock()
        store = MemoryStore.open(place, key_file=key, embedder=str(tiny_model))
    server = nodes.served(2, store)
    misled = nodes.node(ports={2: server.port})
    with pytest.raises(SupersededError, match="shard 2 of 3 is at another moment"):
        misled.search("pump")
    assert told(node.search("pump")) == told(nodes.whole.search("pump"))
    misled.lock()
    node.lock()
    server.stop()
    store.lock()


def test_a_shard_of_another_number_of_shards_is_refused(nodes: Nodes) -> None:
    store = nodes.opened()
    pair = nodes.certificates[1]
    server = store.serve_shard("localhost:0", (2, SHARDS + 1), *pair, [nodes.own[0]])
    server.start()
    misled = nodes.node(ports={2: server.port})
    with pytest.raises(AwayError, match="shard 2 of 3 refuses this node: it is shard 2 of 4"):
        misled.search("pump")
    misled.lock()
    server.stop()
    store.lock()


def test_a_shard_that_does_not_answer_is_waited_for_until_the_deadline_alone(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_store.shards.client.SECONDS", 1.0)
    with socket.create_server(("localhost", 0)) as silent:  # takes connections, and says nothing
        node = nodes.node(ports={2: silent.getsockname()[1]})
        began = time.monotonic()
        with pytest.raises(AwayError, match=r"shard 2 of 3 is away \(deadline exceeded\)"):
            node.search("pump")
        assert time.monotonic() - began < 10
        node.lock()


def test_replaced_keys_are_followed_by_shards_that_run(nodes: Nodes, node: MemoryStore) -> None:
    nodes.whole.keys.rotate()
    added = nodes.whole.add("The culvert was sealed anew")
    assert [row.id for row in node.search("culvert", mode="keyword").rows] == [added.id]
    for query in ("pump garden", "water -boiler"):
        assert told(node.search(query)) == told(nodes.whole.search(query))


def test_nothing_is_printed_about_a_node_that_is_refused(nodes: Nodes) -> None:
    """gRPC would, in each process, where it is not told otherwise before it is loaded."""
    program = """
import os, sys
from memory_store.errors import AwayError
from memory_store.store import MemoryStore
with MemoryStore.open(sys.argv[1], key_file=sys.argv[2], embedder=sys.argv[3]) as store:
    try:
        store.search("pump")
    except AwayError as error:
        print(error)
"""
    stranger = certificate(nodes.folder, "stranger")
    nodes.node(own=stranger, shown={1: 2}).lock()
    words = [str(nodes.whole.path), str(nodes.key_file), nodes.model]
    env = {**os.environ, "MEMORY_STORE_SHARDS": str(nodes.folder / "shards.yaml")}
    env.pop("GRPC_VERBOSITY", None)
    done = python("-c", program, *words, env=env)
    assert "is away" in done.stdout
    assert done.stderr == ""


def test_a_shard_does_not_pass_for_another(nodes: Nodes) -> None:
    second = nodes.servers[1].port
    misled = nodes.node(ports={3: second}, shown={3: 2})
    with pytest.raises(AwayError, match=r"shard 3 of 3 refuses this node: it is shard 2 of 3"):
        misled.search("pump")
    misled.lock()


def test_a_hostile_question_learns_no_words_of_an_error_and_gets_no_boundless_answer(
    nodes: Nodes,
) -> None:
    pem = nodes.certificates[0][0].read_bytes()
    own, key = (one.read_bytes() for one in nodes.own)
    channel = grpc.secure_channel(
        f"localhost:{nodes.servers[0].port}", grpc.ssl_channel_credentials(pem, key, own)
    )
    ask = channel.unary_unary(f"/{SERVICE}/{METHOD}")
    snapshot = nodes.stores[0].search_context().snapshot
    at, collections = moment(snapshot), snapshot.collections
    owned = next(n for n in range(snapshot.size) if len(snapshot.stored_vectors(n)))
    negative = {collections[0]: (-1,)}
    for question in (
        asked.Holders(negative),
        asked.PairHolders(negative),
        asked.PairCounts((negative,)),
        asked.Scores((negative,), None, (1,), k1=1.0, b=0.5, title_weight=1.0),
        asked.Vectors(b"\0" * 4, 2**62, first=True),
        asked.Nearest(b"\0" * 3, 5, None),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            ask(encoded(Asked(at, collections, 1, SHARDS, question)), timeout=20)
        assert raised.value.details() == "refuses this question: is it of another version?"
    word = {collections[0]: (1,)}
    for boundless in (
        asked.Frequencies((word,) * (asked.MOST_GROUPS + 1), None),
        asked.PairCounts((word,) * (asked.MOST_GROUPS + 1)),
        asked.Holders({collections[0]: tuple(range(asked.MOST_HASHES + 1))}),
        asked.PairHolders({"of none": tuple(range(asked.MOST_HASHES + 1))}),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            ask(encoded(Asked(at, collections, 1, SHARDS, boundless)), timeout=20)
        assert raised.value.details().endswith("it is of more words than a query may have")
    many = asked.Vectors(np.full(500_000, owned, "<i4").tobytes(), 64, first=False)
    assert len(ask(encoded(Asked(at, collections, 1, SHARDS, many)), timeout=20)) < 100_000
    channel.close()


def test_the_longest_query_of_the_shortest_words_is_answered(node: MemoryStore) -> None:
    letters = [f"{one}{two}" for one in "abcdefghijklmnopqrstuvwxyz" for two in "ABCDEFGHIJKLM"]
    longest = " ".join(letters * 10)[:MAX_QUERY_CHARACTERS]
    assert len(longest) == MAX_QUERY_CHARACTERS
    node.search(longest, rerank=False)


def test_an_authoritys_certificate_is_taken_for_no_node(nodes: Nodes) -> None:
    """Such a certificate can sign others, and all of those would be let in."""
    authority = certificate(nodes.folder, "authority", signs=True)
    nodes.node().lock()
    file = nodes.folder / "shards.yaml"
    meant = json.loads(file.read_text())
    meant["shards"][0]["certificate"] = authority[0].name
    other = nodes.folder / "other.yaml"
    other.write_text(json.dumps(meant))
    with pytest.raises(BadInputError, match=r"authority.pem: this certificate may sign others"):
        shards_of(other, Path(nodes.whole.path))
    with pytest.raises(BadInputError, match="CA:FALSE"):
        nodes.stores[0].serve_shard("localhost:0", (1, 1), *nodes.own, [authority[0]])


def test_nothing_that_can_be_read_goes_to_a_shard(
    node: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    shards = node.search_context().snapshot.shards
    assert shards is not None
    ask = shards.ask

    def heard(snapshot: Snapshot, question: AnyQuestion) -> Columns:
        sent.append(encoded(Asked(b"", snapshot.collections, 1, 3, question)))
        return ask(snapshot, question)

    monkeypatch.setattr(shards, "ask", heard)
    found = node.search('tomatoes "garden gate"', collection="work", explain=True)
    assert len(sent) > 4
    secrets = ["tomatoes", "garden", "gate", "work", *(row.id for row in found.rows)]
    everything = b"".join(sent)
    assert not [one for one in secrets if one.encode() in everything]


@pytest.mark.in_a_file
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shards": []}, "name 1 to 64"),
        ({"private-key": "absent.key"}, r"absent.key: No such file"),
        ({"certificate": "node.key"}, "no certificate in PEM"),
        ({"other": 1}, "unknown field"),
    ],
)
def test_a_file_of_shards_that_cannot_be_meant_is_refused_by_what_is_wrong(
    store: MemoryStore, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    pem, private = certificate(tmp_path, "node")
    meant = {"certificate": pem.name, "private-key": private.name}
    shard = {"address": "localhost:1", "certificate": pem.name}
    file = tmp_path / "shards.yaml"
    file.write_text(json.dumps({"vault": str(store.path), **meant, "shards": [shard], **change}))
    with pytest.raises(BadInputError, match=said):
        shards_of(file, Path(store.path))


def test_a_vault_that_the_file_does_not_name_is_opened_whole(
    store: MemoryStore, tmp_path: Path
) -> None:
    pem, private = certificate(tmp_path, "node")
    meant = {"certificate": pem.name, "private-key": private.name}
    shard = {"address": "localhost:1", "certificate": pem.name}
    file = tmp_path / "shards.yaml"
    file.write_text(json.dumps({"vault": "/elsewhere.db", **meant, "shards": [shard]}))
    assert shards_of(file, Path(store.path)) is None


def test_more_windows_than_memories_are_answered_and_none_beyond_them() -> None:
    five = (np.arange(5, dtype="<i4") * 0).tobytes(), np.arange(5, dtype="<i4").tobytes()
    question = asked.WindowCosines(b"\0" * 256, *five)
    for place, fits in ((4, True), (5, False), (-1, False)):
        sent = encoded(answered(question, (np.array([place]), np.array([0.5]))))
        with nullcontext() if fits else pytest.raises(ValueError, match="there is not"):
            assert decoded_answer(question, sent, size=1)[0].tolist() == [place]


@pytest.mark.parametrize("question", ADVERSE)
def test_a_question_that_cannot_be_meant_is_refused(store: MemoryStore, question: Any) -> None:
    store.add("A pump")
    with pytest.raises(BadInputError):
        answer(question, store.search_context().snapshot, Part.of(1, 1))
