"""What ``--help`` shows, and in which order."""

from __future__ import annotations

from typing_commands import run


def test_everyday_options_stand_first_and_the_others_under_headings() -> None:
    shown = run("search", "--help").output
    places = [shown.index(f"\n{one}:\n") for one in ("Options", "Filters", "Ranking", "Output")]
    assert places == sorted(places)
    parts = [shown[start:end] for start, end in zip(places, [*places[1:], None], strict=True)]
    wanted = (
        ["--limit", "--literal", "--json"],
        ["--since"],
        ["--recipe"],
        ["--csv", "--key-file"],
    )
    for options, part in zip(wanted, parts, strict=True):
        assert all(f"{one} " in part for one in options), part
    assert "[DB]" not in parts[0], "an argument is no option"


def test_a_command_without_filters_has_no_empty_heading() -> None:
    shown = run("done", "--help").output
    assert "Filters:" not in shown
    assert "Key:" in shown


def test_a_group_lists_its_commands_with_whole_sentences() -> None:
    for group in (["trash"], ["keys"], ["keys", "device"], ["searches"], ["models"], ["code"]):
        shown = run(*group, "--help").output
        assert "..." not in shown[shown.index("\nCommands:") :], group
