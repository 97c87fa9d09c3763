"""The sealed audit trail of a vault: what is kept, what a thief sees, what tampering does."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.errors import TamperedError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.audit import BATCH_BYTES
from memory_store.vault.audit_events import AuditEvent


def event(number: int = 0, *, actor: str | None = "alice", age_days: float = 0) -> AuditEvent:
    """Something that happened; numbered, so that order shows, and none is like another."""
    time = (datetime.now(UTC) - timedelta(days=age_days)).isoformat(timespec="seconds")
    return AuditEvent(time, actor, False, f"page {number}", "import", number, 1)


def keep(store: MemoryStore, *events: AuditEvent, days: float = 400, most: int = 1_000) -> None:
    store.trail.keep(events, days=days, most=most)


def rows(path: Path) -> list[tuple[int, bytes]]:
    return connect(path).execute("select sequence, sealed from vault_audit order by 1").fetchall()


def test_events_are_kept_in_order_however_they_were_written(store: MemoryStore) -> None:
    keep(store, *(event(n) for n in range(3)))
    keep(store, *(event(n) for n in range(3, 200)))
    keep(store, event(200))
    assert [one.opened for one in store.trail.events()] == list(range(201))
    assert store.verify()["failures"] == []


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            AuditEvent,
            time=st.just("2026-01-02T03:04:05+00:00"),
            actor=st.one_of(st.none(), st.text(max_size=300)),
            session=st.booleans(),
            surface=st.just(""),
            action=st.sampled_from(["import", "unlock"]),
            opened=st.integers(0, 10**6),
            returned=st.integers(0, 10**6),
            times=st.integers(1, 10**6),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_whatever_an_actor_is_called_comes_back(
    store: MemoryStore, events: list[AuditEvent]
) -> None:
    events = [replace(one, surface=str(uuid.uuid4())) for one in events]  # or alike ones become one
    before = store.trail.events()
    keep(store, *events, days=0, most=100_000)
    for rare in (0, 1):  # the order of what happened at one moment is known within a strand
        earlier = sum(one.strand == rare for one in before)
        came = [one for one in store.trail.events() if one.strand == rare][earlier:]
        went = [one for one in events if one.strand == rare]
        assert [(one.actor or "")[:200] for one in came] == [(e.actor or "")[:200] for e in went]
        assert [one.times for one in came] == [one.times for one in went]
    assert store.verify()["failures"] == []


@pytest.mark.in_a_file
def test_a_thief_learns_how_many_batches_there_are_and_nothing_else(store: MemoryStore) -> None:
    keep(store, *(event(n, actor="edda the searcher") for n in range(300)))
    keep(store, event(actor=None))
    sizes = {len(sealed) for number, sealed in rows(store.path) if number}
    assert len(sizes) == 1  # a batch of one event looks like a full one
    assert sizes.pop() > BATCH_BYTES
    everything = store.path.read_bytes()
    for file in store.path.parent.glob("*-wal"):
        everything += file.read_bytes()
    assert b"edda the searcher" not in everything


def test_the_trail_is_bounded_by_age_and_by_number(store: MemoryStore) -> None:
    keep(store, *(event(n, age_days=500) for n in range(200)))
    keep(store, *(event(n) for n in range(1_000, 1_100)))
    assert store.trail.events()[-100].opened >= 1_000
    assert len(store.trail.events()) < 160  # whole batches go
    keep(store, *(event(n) for n in range(2_000, 2_500)), most=300)
    assert 250 <= len(store.trail.events()) <= 300
    assert store.trail.events()[-1].opened == 2_499
    assert store.verify()["failures"] == []


def test_no_one_pushes_the_others_out_by_doing_the_same_again_and_again(
    store: MemoryStore,
) -> None:
    keep(store, event(1, actor="bob"))
    keep(store, replace(event(1, actor="bob"), action="members changed"))
    again = ("search", "import", "collection changed", "members changed")
    for _ in range(600):
        floods = [replace(event(2, actor="alice"), action=one) for one in again]
        keep(store, *floods, replace(floods[0], action="failed unlock", actor=None), most=200)
    found = store.trail.events()
    assert [one.action for one in found if one.actor == "bob"] == ["import", "members changed"]
    # one for each minute that this took, of each kind
    assert len(found) <= 2 + 3 * (len(again) + 1)
    searches = [one for one in found if one.action == "search"]
    assert sum(one.times for one in searches) == 600
    assert sum(one.opened for one in searches) == 1_200
    assert store.verify()["failures"] == []


RARE = ("unlock", "lock", "members changed", "collection changed", "failed unlock")


def test_no_number_of_searches_pushes_out_what_is_rare(store: MemoryStore) -> None:
    rare = [
        replace(event(n, actor="bob", age_days=2 - n / 10), action=action)
        for n, action in enumerate(RARE)
    ]
    keep(store, *rare)
    for n in range(10):  # each by another person, so that none are alike
        searches = [
            replace(event(actor=f"searcher {n} {m}"), action="search", opened=m) for m in range(100)
        ]
        keep(store, *searches, most=200)
    found = store.trail.events()
    assert found[: len(rare)] == rare
    assert 100 < len(found) <= 200 + len(rare)
    assert store.verify()["failures"] == []


def test_guessing_secrets_pushes_out_wrong_secrets_alone(store: MemoryStore) -> None:
    unlock = replace(event(actor="bob"), action="unlock")
    keep(store, unlock, replace(unlock, action="search"))
    guesses = [replace(event(actor=f"guesser {n}"), action="failed unlock") for n in range(900)]
    for start in range(0, len(guesses), 100):
        keep(store, *guesses[start : start + 100], most=1_000)
    found = store.trail.events()
    assert [one.action for one in found if one.actor == "bob"] == ["search", "unlock"]
    assert len(found) <= 2 + 100
    assert found[-1] == guesses[-1]


def test_rare_events_are_kept_as_many_days_as_others(store: MemoryStore) -> None:
    for age in range(500, 0, -20):  # far fewer than fill a batch
        keep(store, replace(event(age, age_days=age), action="unlock"), days=0)
    keep(store, event(), days=400)
    oldest = min(one.opened for one in store.trail.events())
    ages = [one.opened for one in store.trail.events() if one.action == "unlock"]
    assert oldest == 0
    assert 370 <= max(ages) <= 430
    keep(store, event(), days=10)
    ages = [one.opened for one in store.trail.events() if one.action == "unlock"]
    assert max(ages, default=0) <= 40
    assert store.verify()["failures"] == []


@pytest.mark.in_a_file
def test_a_strand_taken_away_whole_is_noticed(store: MemoryStore) -> None:
    keep(store, event(1), replace(event(2), action="unlock"))
    connect(store.path).execute("delete from vault_audit where sequence > 1000")
    assert any("audit" in failure for failure in store.verify()["failures"])


def test_an_event_without_a_count_happened_once(store: MemoryStore) -> None:
    keep(store, replace(event(), times=()))  # type: ignore[arg-type]
    assert [one.times for one in store.trail.events()] == [1]


def test_what_is_a_minute_apart_or_of_another_kind_stays_apart(store: MemoryStore) -> None:
    search = replace(event(), action="search")
    older = replace(event(age_days=61 / 86_400), action="search")
    others = [
        replace(search, actor="bob"),
        replace(search, session=True),
        replace(search, surface="sql"),
        replace(search, action="read"),
    ]
    keep(store, older, search, *others)
    keep(store, *others)
    keep(store, event(), event())
    assert [one.times for one in store.trail.events()] == [1, 1, 2, 2, 2, 2, 1, 1]


@pytest.mark.in_a_file
@pytest.mark.parametrize(
    "tampering",
    [
        "delete from vault_audit where sequence = 2",
        "delete from vault_audit where sequence = (select max(sequence) from vault_audit)",
        "delete from vault_audit where sequence = 1",
        "delete from vault_audit where sequence = 0",
        "update vault_audit set sequence = sequence + 100 where sequence > 1",
        "update vault_audit set sealed = (select sealed from vault_audit where sequence = 2) "
        "where sequence = 3",
        "update vault_audit set sealed = zeroblob(4200) where sequence = 2",
        "update vault_audit set sealed = x'00' where sequence = 0",
        "insert into vault_audit select 99, sealed from vault_audit where sequence = 1",
        "create table unkeyed as select * from vault_audit; drop table vault_audit; "
        "create table vault_audit as select * from unkeyed union all select * from unkeyed",
    ],
)
def test_a_batch_taken_out_moved_or_changed_is_noticed(store: MemoryStore, tampering: str) -> None:
    keep(store, *(event(n) for n in range(200)))
    assert len(rows(store.path)) > 4
    connect(store.path).executescript(tampering)
    assert any("audit" in failure for failure in store.verify()["failures"])


@pytest.mark.in_a_file
def test_an_older_last_batch_put_back_is_noticed(store: MemoryStore) -> None:
    keep(store, event(1))
    (older,) = [sealed for number, sealed in rows(store.path) if number == 1]
    keep(store, event(2))
    connect(store.path).execute("update vault_audit set sealed = ? where sequence = 1", (older,))
    assert store.verify()["failures"]
    with pytest.raises(TamperedError):
        keep(store, event(3))


@pytest.mark.in_a_file
def test_a_trail_taken_away_whole_is_a_warning_on_this_machine(
    store: MemoryStore, key_file: Path
) -> None:
    keep(store, event())
    store.lock()
    connect(store.path).execute("drop table vault_audit")
    again = MemoryStore.open(store.path, key_file=key_file)
    assert any("older" in line for line in again.search("x").degraded)
    again.lock()


@pytest.mark.in_a_file
@pytest.mark.parametrize("open_meanwhile", [False, True])
def test_a_trail_put_back_to_before_its_last_events_is_a_warning_on_this_machine(
    store: MemoryStore, key_file: Path, open_meanwhile: bool
) -> None:
    """The last batch and the head together, which fit each other: what was read since is gone."""
    keep(store, event(1))
    older = rows(store.path)
    keep(store, event(2))
    if not open_meanwhile:
        store.lock()
    connection = connect(store.path)
    connection.executemany("update vault_audit set sealed = ?2 where sequence = ?1", older)
    store.lock()
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert [one.opened for one in again.trail.events()] == [1]
        assert any("older" in line for line in again.search("x").degraded)
        keep(again, event(3))
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert "older" in (again.first_warning() or "")
        again.accept_older()
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert again.first_warning() is None


@pytest.mark.in_a_file
def test_a_vault_made_before_there_was_a_trail_gets_one(store: MemoryStore) -> None:
    connect(store.path).execute("drop table vault_audit")
    assert store.trail.events() == []
    assert store.verify()["failures"] == []
    keep(store, event())
    assert len(store.trail.events()) == 1


@pytest.mark.in_a_file
def test_an_older_batch_put_back_behind_later_ones_is_noticed(store: MemoryStore) -> None:
    """Also where it holds as many events: a search that was made again is counted by the first."""
    searched = replace(event(1), action="search")
    keep(store, searched)
    ((_, older),) = [row for row in rows(store.path) if row[0] == 1]
    keep(store, searched)
    keep(store, *(event(number, age_days=-40) for number in range(3)))
    assert {1, 2} <= {number for number, _ in rows(store.path)}
    assert store.verify()["failures"] == []
    connect(store.path).execute("update vault_audit set sealed = ? where sequence = 1", (older,))
    assert any("audit" in failure for failure in store.verify()["failures"])
