"""A vault in a PostgreSQL database does what one in a file does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from postgres_line import line_to
from postgres_server import Server, server_or_skip

from memory_store import BadInputError, MemoryStore, NotAVaultError
from memory_store.addresses import Address, vault_path
from memory_store.cli import main
from memory_store.errors import ReadOnlyError, StorageError
from memory_store.paths import cache_folder
from memory_store.records import MemoryDraft
from memory_store.vault.storage import Storage
from memory_store.vault.storage.postgres_link import let_go
from memory_store.vault.storage.postgres_schema import COLUMNS
from memory_store.vault.storage.segment_cache import SegmentCache
from memory_store.vault.storage.transfer import TABLES, copy_vault

Make = Callable[..., MemoryStore]
WORDS = ["heron", "weir", "lease", "mill", "river", "garden", "winter", "boat", "ledger", "kestrel"]


def drafts(count: int, first: int = 0) -> list[MemoryDraft]:
    return [
        MemoryDraft(
            text=f"{WORDS[n % 10]} {WORDS[n // 10 % 10]} note {n}\n\nSecond paragraph {n * 7}",
            title=f"About {WORDS[n % 10]}",
            topics=[WORDS[n % 3], WORDS[n % 7]],
        )
        for n in range(first, first + count)
    ]


@pytest.fixture
def on_server(
    postgres: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> Iterator[MemoryStore]:
    """An empty vault in a database."""
    made, _ = MemoryStore.create(postgres.address(), key_file=key_file, embedder=str(tiny_model))
    with made:
        yield made


def test_an_address_is_a_place_without_its_password() -> None:
    address = vault_path("postgres://ann:kes%40trel@db.example:5433/work?vault=diary")
    assert isinstance(address, Address)
    assert (address.password, address.vault) == ("kes@trel", "diary")
    shown = f"{address} {address!r} {address.name} {address.resolve()} {os.fspath(address)}"
    assert "trel" not in shown
    assert address.database == "postgresql://ann@db.example:5433/work"
    assert vault_path(str(address)) == address
    for wrong in ("postgresql:ann", "postgresql://ann@db.example/a b"):
        with pytest.raises(BadInputError):
            vault_path(wrong)


def test_off_this_machine_nothing_is_sent_in_clear(private_folders: Path) -> None:
    with pytest.raises(BadInputError, match="sslmode"):
        MemoryStore.open("postgresql://ann@192.0.2.1/x?sslmode=prefer", passphrase="eight or more")


def test_a_host_address_in_the_environment_makes_another_machine_no_local_one(
    private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's library goes there, whatever host the address names."""
    heard: list[bytes] = []

    def answer_without_tls(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    while said := connection.recv(4_096):
                        heard.append(said)
                        wants_tls = len(said) == 8
                        connection.sendall(b"N" if wants_tls else b"R\0\0\0\x08\0\0\0\x03")

    with socket.create_server(("127.0.0.2", 0)) as listening:
        threading.Thread(target=answer_without_tls, args=[listening], daemon=True).start()
        monkeypatch.setenv("PGHOSTADDR", "127.0.0.2")
        port = listening.getsockname()[1]
        with pytest.raises(StorageError):
            MemoryStore.open(f"postgresql://ann:sesame@localhost:{port}/x", passphrase="eight more")
        listening.shutdown(socket.SHUT_RDWR)
    assert heard
    assert not any(b"sesame" in said or b"user" in said for said in heard)


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """That of a server that no one has heard of, in ``server.pem``."""
    own, key = tmp_path / "server.pem", tmp_path / "server.key"
    words = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.2", "-days", "2")
    made = ["openssl", "req", "-x509", *words, "-out", str(own), "-keyout", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    return context


@contextmanager
def server_that_asks(context: ssl.SSLContext) -> Iterator[tuple[int, list[bytes]]]:
    """Its port, and what it hears after it has asked for the password as it is."""
    heard: list[bytes] = []

    def ask(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    assert len(connection.recv(8)) == 8
                    connection.sendall(b"S")
                    with context.wrap_socket(connection, server_side=True) as secured:
                        secured.recv(4_096)
                        heard.append(b"asked")
                        secured.sendall(b"R\0\0\0\x08\0\0\0\x03")
                        heard.append(secured.recv(4_096))

    with socket.create_server(("127.0.0.2", 0)) as listening:
        threading.Thread(target=ask, args=[listening], daemon=True).start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "mode", ["", "?sslmode=verify-ca&sslrootcert={}", "?require_auth=password"]
)
def test_a_server_that_is_not_known_to_be_the_right_one_is_given_no_password(
    private_folders: Path, tmp_path: Path, certificate: ssl.SSLContext, mode: str
) -> None:
    """Anyone on the way can have a certificate. Who checks it, or says so, gives the password."""
    options = mode.format(tmp_path / "server.pem")
    with server_that_asks(certificate) as (port, heard):
        address = f"postgresql://ann:sesame@127.0.0.2:{port}/x{options}"
        with pytest.raises(StorageError) as refusal:
            MemoryStore.open(address, passphrase="eight more")
    assert heard
    assert any(b"sesame" in said for said in heard) == bool(mode)
    assert bool(mode) or "sslmode=verify-full" in str(refusal.value)


def test_what_a_service_says_of_its_server_is_not_overruled(
    private_folders: Path,
    tmp_path: Path,
    certificate: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It wants the certificate checked, and nothing says that this one is to be trusted."""
    services = tmp_path / "services"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGSERVICE", "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    with server_that_asks(certificate) as (port, heard):
        lines = ("[work]", "host=127.0.0.2", f"port={port}", "sslmode=verify-full", "")
        services.write_text("\n".join(lines))
        with pytest.raises(StorageError):
            MemoryStore.open("postgresql://ann:sesame@/x", passphrase="eight more")
    assert not heard
    with pytest.raises(BadInputError, match="PGSERVICE"):
        MemoryStore.open("postgresql://ann@/x?service=work", passphrase="eight more")


def test_copies_both_ways_are_equal_and_answer_alike(
    make_store: Make, postgres: Server, key_file: Path, tiny_model: Path, tmp_path: Path
) -> None:
    with make_store("origin.db") as store:
        store.add_many(drafts(60))
        store.import_paths([str(Path(__file__).parents[2] / "demo" / "notes")])
        gone = store.list(limit=3)
        store.delete(gone[0].id)
        store.edit(gone[1].id, text="The heron came back to the weir in winter.")
        origin = store.path
    there = vault_path(postgres.address())
    assert copy_vault(origin, there).resumed == 0
    back = tmp_path / "back.db"
    copy_vault(there, back)
    queries = ("heron weir", '"second paragraph"', "lease mill topic:mill", "boat note")
    ways: tuple[tuple[str, dict[str, Any]], ...]
    ways = ("keyword", {}), ("hybrid", {"deep": True}), ("vector", {})
    answers = []
    for place in (origin, there, back):
        with MemoryStore.open(place, key_file=key_file, embedder=str(tiny_model)) as store:
            assert store.verify(full=True)["failures"] == []
            answers.append([
                [(row.id, row.score, row.preview, row.topics) for row in found.rows]
                for found in (
                    store.search(query, mode=mode, **options)
                    for query in queries
                    for mode, options in ways
                )
            ])  # fmt: skip
    assert answers[0] == answers[1] == answers[2]
    assert any(answers[0])
    with pytest.raises(BadInputError, match="once it is whole"):
        copy_vault(origin, there)


def test_a_copy_that_was_stopped_goes_on_where_it_was_and_takes_what_was_written_since(
    make_store: Make, postgres: Server, key_file: Path, tiny_model: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop_behind(table: str) -> Callable[[str, int, int | None], None]:
        def told(name: str, done: int, total: int | None) -> None:
            if name == table:
                raise Stopped

        return told

    store = make_store()
    store.add_many(drafts(50))
    there = vault_path(postgres.address())
    for table in ("memories", "memory_bodies"):
        with pytest.raises(Stopped):
            copy_vault(store.path, there, stop_behind(table))
        with pytest.raises(NotAVaultError):
            MemoryStore.open(there, key_file=key_file)
    store.add_many(drafts(10, first=50))
    with pytest.raises(Stopped):
        copy_vault(store.path, there, stop_behind("memory_topics"))
    copied = copy_vault(store.path, there)
    assert copied.resumed > 120  # 60 memories, 60 bodies, and topics
    assert copied.rows["memories"] == 60
    with closing(Storage.open(there)) as one, closing(Storage.open(store.path)) as other:
        for table in TABLES:
            if one.engine.has(table) or other.engine.has(table):
                count = f"select count(*) from {table}"
                here, beside = (at.engine.execute(count).fetchone()[0] for at in (one, other))
                assert here == beside, table


def test_a_vault_is_lived_in(on_server: MemoryStore, key_file: Path) -> None:
    store = on_server
    store.add_many(drafts(30))
    note = store.add("The spare key hangs behind the clock", topics=["house"])
    assert store.search("spare key clock").rows[0].id == note.id
    assert store.get(note.id).text == "The spare key hangs behind the clock"
    store.edit(note.id, text="The spare key lies under the mat")
    assert "mat" in store.search("spare key").rows[0].preview
    store.delete(note.id)
    assert note.id not in {row.id for row in store.search("spare key").rows}
    store.trash.restore(note.id)
    assert store.get(note.id).text == "The spare key lies under the mat"
    work = store.collections.create("work")
    store.add("Quarterly ledger", collection=work.name)
    store.keys.rotate()
    assert store.search("quarterly ledger").rows[0].collection == "work"
    assert store.verify(full=True)["failures"] == []
    assert store.stats()["memories"] == 32
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert again.older() is None
        assert len(again.list(limit=100)) == 32


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_lived_in(
    postgres: Server, key_file: Path, private_folders: Path, encoding: str
) -> None:
    """A server that was set up without a locale makes such ones."""
    name = f"of_{encoding.lower()}"
    how = f"template template0 encoding '{encoding}' lc_collate 'C' lc_ctype 'C'"
    postgres.sql(f"create database {name} {how}")
    place = postgres.address(database=name)
    store, _ = MemoryStore.create(place, key_file=key_file)
    with store:
        note = store.add("Der Schlüssel 🔑 hängt hinter der Uhr", topics=["häuser 家"])
    with MemoryStore.open(place, key_file=key_file) as again:
        assert again.search("schlüssel", mode="keyword").rows[0].id == note.id
        assert again.get(note.id).topics == note.topics
        assert again.verify(full=True)["failures"] == []


def test_a_batch_an_unlock_and_a_search_wait_few_times_for_the_server(
    postgres: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> None:
    def waits(done: Callable[[], object]) -> int:
        before = line.waits
        done()
        return line.waits - before

    with line_to(postgres) as line:
        model, place = str(tiny_model), line.address()
        store, _ = MemoryStore.create(place, key_file=key_file, embedder=model)
        with store:
            store.add_many(drafts(64))
            store.search("heron", mode="keyword")
            assert waits(lambda: store.add_many(drafts(64, first=64))) <= 7
            for mode in ("keyword", "hybrid"):
                for _ in range(3):  # reads what it needs of the index, and has statements prepared
                    store.search("heron weir", mode=mode)
                assert waits(lambda m=mode: store.search("heron weir", mode=m)) <= 3  # type: ignore[misc]
            assert waits(lambda: store.list(limit=64)) <= 2
        for _ in range(6):  # until every connection has its statements prepared
            opened: list[MemoryStore] = []
            again = waits(lambda o=opened: o.append(MemoryStore.open(place, key_file=key_file)))  # type: ignore[misc]
            opened[0].close()
        assert again <= 9
        let_go()


def test_a_connection_that_was_kept_shows_the_vault_that_has_the_name_now(
    postgres: Server, key_file: Path, private_folders: Path
) -> None:
    place = vault_path(postgres.address())
    for text in ("The heron stands by the weir", "The kestrel hovers"):
        store, _ = MemoryStore.create(place, key_file=key_file)
        with store:
            store.add(text)
        with MemoryStore.open(place, key_file=key_file) as again:
            assert [one.text for one in again.every()] == [text]
        assert isinstance(place, Address)
        postgres.sql(f"delete from memory_store.vaults where name = '{place.vault}'")
    with pytest.raises(NotAVaultError, match="no vault"):
        MemoryStore.open(place, key_file=key_file)


def test_a_new_vault_beside_others_is_read_by_its_keys(
    postgres: Server, key_file: Path, private_folders: Path
) -> None:
    """Even where the planner knows of the others alone, and takes the new one for empty."""
    postgres.sql("create database crowded")

    def made() -> MemoryStore:
        place = postgres.address(database="crowded")
        return MemoryStore.create(place, key_file=key_file, topics="memory")[0]

    def looked_at() -> int:
        let_go()
        counted = "select idx_tup_fetch from pg_stat_user_tables where relname = 'memory_bodies'"
        return int(postgres.sql(counted, database="crowded")[0])

    with made() as store:
        store.add_many(drafts(300), embed=False)
    tables = ("memories", "memory_bodies")
    off = [f"alter table memory_store.{one} set (autovacuum_enabled = off)" for one in tables]
    postgres.sql(*off, "analyze", database="crowded")
    with made() as store:
        store.add_many(drafts(300), embed=False)
        store.list(limit=20)
        place = store.path
    before = looked_at()
    with MemoryStore.open(place, key_file=key_file) as store:
        assert len(store.list(limit=20)) == 20
    assert looked_at() - before < 100


def test_the_index_is_fetched_once_and_kept_sealed_on_this_machine(
    postgres: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> None:
    model, word = str(tiny_model), "kestrelcanary"

    def fetched() -> int:
        before = line.received
        with MemoryStore.open(place, key_file=key_file, embedder=model) as store:
            assert store.search(f"{word} heron", mode="hybrid").rows
        return line.received - before

    with line_to(postgres) as line:
        place = line.address()
        store, _ = MemoryStore.create(place, key_file=key_file, embedder=model)
        with store:
            store.add_many([MemoryDraft(text=f"{word} heron {n} " * 20) for n in range(200)])
        shutil.rmtree(cache_folder() / "segments")
        first, second = fetched(), fetched()
        files = [one for one in (cache_folder() / "segments").iterdir() if one.is_file()]
        kept = {one: one.read_bytes() for one in files}
        assert sum(map(len, kept.values())) > 50_000
        assert second < first - 0.9 * sum(map(len, kept.values()))
        for file, content in kept.items():
            assert (file.stat().st_mode & 0o777, word.encode() in content) == (0o600, False)
            file.write_bytes(content[:-1] + b"?")
        assert fetched() > second
        assert {file: file.read_bytes() for file in files} == kept
        let_go()


def test_what_is_kept_has_a_bound_and_a_replaced_part_goes(tmp_path: Path) -> None:
    folder, parts = tmp_path / "kept", [bytes([n]) * 1_000 for n in range(3)]
    cache = SegmentCache(folder, most=2_500)
    for number, part in enumerate(parts):
        cache.write(f"segment {number}", part)
        for file in folder.iterdir():  # as if it were a minute later
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 60))
    held = [cache.read(f"segment {n}", part[:32], 1_000) for n, part in enumerate(parts)]
    assert held == [None, *parts[1:]]
    cache.write("segment 2", b"anew" * 100)
    assert cache.read("segment 2", parts[2][:32], 1_000) is None
    assert cache.read("segment 2", b"anew" * 8, 400) == b"anew" * 100
    cache.drop(["segment 1", "segment 2"])
    assert [*folder.iterdir()] == []


def test_what_a_changed_row_says_is_refused(on_server: MemoryStore, postgres: Server) -> None:
    store = on_server
    ids = [store.add(one.text).id for one in drafts(2)]
    name = vault_path(store.path).vault  # type: ignore[attr-defined]
    postgres.sql(
        "update memory_store.memory_bodies set body = set_byte(body, 40, get_byte(body, 40) # 1) "
        f"where vault = (select vault from memory_store.vaults where name = '{name}')"
    )
    with pytest.raises(Exception, match="memory_bodies"):
        store.get(ids[0])
    assert len(store.verify()["failures"]) >= 2


def test_an_older_copy_put_back_is_noticed(
    on_server: MemoryStore, key_file: Path, postgres: Server
) -> None:
    on_server.add("first")
    kept = vault_path(postgres.address())
    copy_vault(on_server.path, kept)
    on_server.add("second")
    names = [vault_path(one).vault for one in (on_server.path, kept)]  # type: ignore[attr-defined]
    on_server.lock()
    postgres.sql(
        f"delete from memory_store.vaults where name = '{names[0]}'",
        f"update memory_store.vaults set name = '{names[0]}' where name = '{names[1]}'",
    )
    with MemoryStore.open(on_server.path, key_file=key_file) as store:
        assert "older" in (store.older() or "")


def test_commands_take_an_address_where_they_take_a_file(
    postgres: Server,
    key_file: Path,
    private_folders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    address = postgres.address()

    def run(*words: str) -> str:
        answer = CliRunner().invoke(main, list(words))
        assert answer.exit_code == 0, answer.output
        return answer.output

    assert "no vault" in CliRunner().invoke(main, ["list", address]).output
    elsewhere = CliRunner().invoke(main, ["list", postgres.address(database="none")])
    assert 'database "none" does not exist' in elsewhere.output
    run("init", address, "--key-file", str(key_file))
    assert (
        "is a vault already"
        in CliRunner().invoke(main, ["init", address, "--key-file", str(key_file)]).output
    )
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "lease.md").write_text("# The lease\n\nIt ends in May.\n", "utf-8")
    assert "imported 1" in run("import", address, str(notes))
    assert "ends in May" in run("search", address, "when", "does", "the", "lease", "end")
    (found,) = json.loads(run("list", address, "--json"))
    assert "ends in May" in run("get", address, found["id"])
    run("done", address, found["id"])
    run("verify", address)
    run("stats", address)
    run("doctor", address)
    run("backup", address, str(tmp_path / "backup.db"))
    run("delete", address, found["id"])
    assert "ends in May" in run("search", str(tmp_path / "backup.db"), "lease")
    monkeypatch.setenv("MEMORY_STORE_DB", address.replace("owner@", "owner:kestrel-9021@"))
    run("undo")
    answer = run("search", "lease", "--explain")
    assert "ends in May" in answer
    assert "kestrel-9021" not in answer


def test_a_role_for_daily_use_makes_vaults_and_no_tables(
    postgres: Server, key_file: Path, private_folders: Path
) -> None:
    script = CliRunner().invoke(main, ["storage", "init", "--role", "daily"]).output
    postgres.sql("create database apart", "create role daily login")
    address = postgres.address(user="daily", database="apart")
    with pytest.raises(StorageError, match="storage init"):
        MemoryStore.create(address, key_file=key_file)
    postgres.sql(script, database="apart")
    store, _ = MemoryStore.create(address, key_file=key_file)
    with store:
        store.add_many(drafts(5), embed=False)
        assert len(store.list()) == 5
    for refused in (
        "create table memory_store_vault.mine (a int)",
        "select count(*) from memory_store.memories",
        "update memory_store.vaults set name = 'x'",
    ):
        with pytest.raises(subprocess.CalledProcessError):
            postgres.sql(refused, database="apart", user="daily")
    without = "select count(*) from memory_store_vault.memories"
    assert postgres.sql(without, database="apart", user="daily") == ["0"]


def test_a_role_that_may_only_read_is_told_so_when_it_writes(
    on_server: MemoryStore,
    postgres: Server,
    key_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_server.add("The lease ends in June.")
    postgres.sql(
        "create role reader login",
        "grant usage on schema memory_store, memory_store_vault to reader",
        "grant execute on function memory_store.this_vault() to reader",
        "grant select on memory_store.vaults to reader",
        "grant select on all tables in schema memory_store_vault to reader",
    )
    address = str(on_server.path).replace("owner@", "reader@")
    with MemoryStore.open(address, key_file=key_file) as store:
        (found,) = store.list()
        assert "June" in found.text
        for write in (
            lambda: store.add("The lease ends in July."),
            lambda: store.delete(found.id),
        ):
            with pytest.raises(ReadOnlyError, match="this role may only read"):
                write()
        assert [one.id for one in store.list()] == [found.id]
    (tmp_path / "note.md").write_text("The lease ends in July.")
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    ran = CliRunner().invoke(main, ["import", address, str(tmp_path / "note.md")])
    assert ran.exit_code != 0
    assert "this role may only read" in ran.output
    assert "run it again" not in ran.output


ADD_FOREVER = """
import sys
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
with MemoryStore.open(sys.argv[1], key_file=sys.argv[2]) as store:
    number = 0
    while True:
        drafts = [MemoryDraft(text=f"{sys.argv[3]} {number} {n}") for n in range(4)]
        made = store.add_many(drafts, embed=False)
        print(*(one.id for one in made), flush=True)
        number += 1
"""


@pytest.mark.sampled(0)
def test_what_was_acknowledged_is_there_after_writers_were_killed(
    on_server: MemoryStore, key_file: Path
) -> None:
    """Takes seconds: real processes are killed at moments of their own."""
    acknowledged: set[str] = set()
    for moment in (0.3, 0.45, 0.6):
        words = [sys.executable, "-c", ADD_FOREVER, str(on_server.path), str(key_file)]
        with (
            subprocess.Popen([*words, "one"], stdout=subprocess.PIPE, text=True) as one,
            subprocess.Popen([*words, "two"], stdout=subprocess.PIPE, text=True) as two,
        ):
            said = []
            for writer in (one, two):
                assert writer.stdout is not None
                said.append(writer.stdout.readline())
            time.sleep(moment)
            for writer in (one, two):
                writer.send_signal(signal.SIGKILL)
            for writer in (one, two):
                assert writer.stdout is not None
                said += writer.stdout.readlines()
        acknowledged |= {name for line in said if line.endswith("\n") for name in line.split()}
    assert len(acknowledged) >= 24
    present = {one.id for one in on_server.every()}
    assert acknowledged <= present
    assert len(present) % 4 == 0  # whole batches alone
    assert on_server.verify()["failures"] == []


def test_a_line_that_is_cut_at_any_question_of_a_write_loses_and_doubles_nothing(
    postgres: Server, key_file: Path, private_folders: Path
) -> None:
    """Before the server gets the question, and behind it, when its answer is lost."""
    with line_to(postgres) as line:
        place = line.address()
        MemoryStore.create(place, key_file=key_file)[0].lock()
        acknowledged, away, most = set(), 0, 14
        with MemoryStore.open(place, key_file=key_file) as store:
            store.add_many(drafts(1), embed=False)
            # a poll of the head row may take a cut for itself: then more are made
            for number in (n for first in range(3) for n in range(first, 2 * most, 3)):
                if number == 1 and away >= 3:
                    break
                left = iter([False] * (number // 2) + [True])
                cut = "cut_behind" if number % 2 else "cut_before"
                setattr(line, cut, lambda sent, left=left: next(left, False))
                draft = MemoryDraft(text=f"written beside cut {number}")
                try:
                    acknowledged.add(store.add_many([draft], embed=False)[0].id)
                except StorageError as error:
                    assert "the database is away" in str(error)  # noqa: PT017
                    away += 1
                setattr(line, cut, lambda sent: False)
            assert store.verify()["failures"] == []
            texts = {one.id: one.text for one in store.every()}
        assert acknowledged <= texts.keys()
        assert len(set(texts.values())) == len(texts)
        assert away >= 3  # a write has fewer questions than it is cut at
        assert acknowledged
        let_go()


@pytest.fixture(scope="module")
def fragile() -> Iterator[Server]:
    """A server that the tests of this module may stop."""
    yield from server_or_skip()


def test_a_session_that_lost_what_was_prepared_is_begun_anew(on_server: MemoryStore) -> None:
    """As by a pooler, or once a statement failed among others that were asked at once."""
    store = on_server
    store.add_many(drafts(3), embed=False)
    for _ in range(4):
        store.add("one more")
        assert store.list(limit=5)
    vault = store._opened.vault.whole_vault()
    for storage in (vault.reader(), vault._writer):
        unheard = "do $$ begin execute 'deallocate all'; end $$"  # of the library
        storage._link._connection.execute(unheard)  # type: ignore[attr-defined]
    assert len(store.list(limit=50)) == 7
    store.add("and another")
    assert len(store.list(limit=50)) == 8


def test_tables_that_are_changed_under_a_reader_are_read_on(
    fragile: Server, key_file: Path, private_folders: Path
) -> None:
    """As by a later layout of the tables, while programs have them open."""
    view = "create view memory_store_vault.memories as select {} from memory_store.memories where "
    view += "vault = memory_store.this_vault()"
    columns = ["rowid", *COLUMNS["memories"]]
    narrower = ["version::int4" if one == "version" else one for one in columns]
    store, _ = MemoryStore.create(fragile.address(), key_file=key_file)
    with store:
        store.add_many(drafts(3), embed=False)
        for _ in range(4):
            assert store.verify()["failures"] == []
        for shown in (narrower, columns):
            drop = "drop view memory_store_vault.memories"
            fragile.sql(drop, view.format(", ".join(shown)))
            said = " ".join(store.verify()["failures"])  # all of one moment
            assert "changed meanwhile; try again" in said
            assert store.verify()["failures"] == []
            assert len([*store.every()]) == 3


def test_a_server_that_is_away_is_said_and_comes_back(
    fragile: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> None:
    model = str(tiny_model)
    store, _ = MemoryStore.create(fragile.address(), key_file=key_file, embedder=model)
    with store:
        store.add_many(drafts(5), embed=False)
        fragile.stop()
        for ask in (lambda: store.list(), lambda: store.add("lost")):
            with pytest.raises(StorageError, match="the database is away"):
                ask()
        answer = CliRunner().invoke(main, ["list", str(store.path)])
        assert (answer.exit_code, "the database is away" in answer.output) == (1, True)
        fragile.start()
        assert len(store.list()) == 5
        store.add("found")
        fragile.kill()
        time.sleep(0.2)
        fragile.start()
        assert len(store.list()) == 6
        assert store.verify()["failures"] == []


def test_a_server_that_notes_every_statement_learns_no_word(
    fragile: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> None:
    fragile.sql("alter system set log_statement = 'all'")
    fragile.sql("select pg_reload_conf()")
    model, word = str(tiny_model), "kestrelcanary"
    store, _ = MemoryStore.create(fragile.address(), key_file=key_file, embedder=model)
    with store:
        note = store.add(f"{word} text", title=f"{word} title", topics=[f"{word} topic"])
        assert store.search(f"{word} text").rows[0].id == note.id
        store.edit(note.id, text=f"{word} again")
        store.delete(note.id)
        store.undo()
    fragile.sql("alter system reset all")
    fragile.sql("select pg_reload_conf()", "checkpoint")
    seen = {}
    for file in fragile.folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            seen[file] = (word.encode() in content, note.id.encode() in content)
    assert not any(leaks for leaks, _ in seen.values())
    assert seen[fragile.folder / "log"] == (False, True)  # it did note what was asked
    assert sum(held for _, held in seen.values()) > 2


def test_a_standby_is_read_and_says_that_it_takes_no_writes(
    fragile: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> None:
    model, name = str(tiny_model), "followed"
    store, _ = MemoryStore.create(fragile.address(name), key_file=key_file, embedder=model)
    with store, fragile.standby() as standby:
        store.add_many(drafts(5), embed=False)
        until = time.monotonic() + 10
        words = [standby.address(name), "--key-file", str(key_file)]
        while "About weir" not in (answer := CliRunner().invoke(main, ["list", *words])).output:
            assert time.monotonic() < until, answer.output
        refused = CliRunner().invoke(main, ["add", *words, "more"])
        assert (refused.exit_code, "standby" in refused.output) == (1, True)
