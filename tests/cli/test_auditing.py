"""``memory-store audit`` and what ``verify`` says of the trail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from memory_store.cli import main
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent


def event(actor: str | None, surface: str, opened: int, days: float) -> AuditEvent:
    time = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    return AuditEvent(time, actor, False, surface, "search", opened, opened)


@pytest.fixture
def path(make_store: Callable[..., MemoryStore], key_file: Path) -> Path:
    store = make_store()
    events = [event("alice", "page", 5, 30), event("bob", "json", 2, 1), event(None, "sql", 0, 0)]
    store.trail.keep(events, days=400, most=1_000)
    store.lock()
    return store.path


def run(path: Path, key_file: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        main, [*arguments[:1], str(path), *arguments[1:], "--key-file", str(key_file)]
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_the_trail_is_a_table_json_or_csv(path: Path, key_file: Path) -> None:
    table = run(path, key_file, "audit")
    assert [word for word in ("alice", "bob", "anonymous") if word in table] == [
        "alice",
        "bob",
        "anonymous",
    ]
    rows = json.loads(run(path, key_file, "audit", "--json"))
    assert [(row["who"], row["surface"], row["opened"]) for row in rows] == [
        ("alice", "page", 5),
        ("bob", "json", 2),
        ("anonymous", "sql", 0),
    ]
    read = list(csv.DictReader(io.StringIO(run(path, key_file, "audit", "--csv"))))
    assert [row["who"] for row in read] == ["alice", "bob", "anonymous"]


def test_the_trail_is_narrowed_by_time_actor_and_surface(path: Path, key_file: Path) -> None:
    week = json.loads(run(path, key_file, "audit", "--since", "7d", "--json"))
    assert [row["who"] for row in week] == ["bob", "anonymous"]
    before = json.loads(run(path, key_file, "audit", "--until", "7d", "--json"))
    assert [row["who"] for row in before] == ["alice"]
    one = json.loads(run(path, key_file, "audit", "--who", "bob", "--surface", "json", "--json"))
    assert len(one) == 1
    totals = json.loads(run(path, key_file, "audit", "--totals", "--json"))
    assert (totals[0]["who"], totals[0]["opened"]) == ("alice", 5)


def test_a_missing_batch_fails_the_verification(path: Path, key_file: Path) -> None:
    assert "audit" not in run(path, key_file, "verify")
    connect(path).execute("delete from vault_audit where sequence = 1")
    result = CliRunner().invoke(main, ["verify", str(path), "--key-file", str(key_file)])
    assert result.exit_code == 1
    assert "audit trail" in result.output
