"""What a language model's wordings of a query may say: every name and negation, no exclusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from expanded import asked, refs, stage

from memory_store.search.expansion.guardrails import keeps_names, keeps_negation, names
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels


class TestGuardrails:
    def said(self, notes: MemoryStore, models: LanguageModels, query: str, answer: str) -> Any:
        models.add("guarded", answer)
        reported = stage(asked(notes, query, expander="guarded"))
        return [line.partition(": ")[2] for line in reported["variants"]], reported["dropped"]

    def test_no_variant_holds_what_the_query_excludes(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        kept, dropped = self.said(
            notes,
            language_models,
            'spare key -cellar -"side door"',
            "lex: keys cellars\nlex: second key -cellar\nvec: by the side doors\n"
            "lex: door key side\nhyde: The key hangs in the cellar.\nvec: another key\n",
        )
        assert kept == ["door key side", "another key"]
        assert dropped == 4

    def test_conditions_hold_whatever_variants_find(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.add("eager", "lex: spare keys march\nvec: Spare keys were cut in March\n")
        assert refs(asked(notes, '"spare key"', expander="eager", sealed=False)) == ["1"]
        excluded = asked(notes, "blue pot -Spare", expander="eager")
        assert not {"1", "2"} & set(refs(excluded))
        filtered = asked(notes, "blue pot topic:house", expander="eager")
        assert {row.topics for row in filtered.rows} == {("house",)}

    def test_names_numbers_and_identifiers_survive_in_every_wording(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        kept, dropped = self.said(
            notes,
            language_models,
            "what did Mina write about SLT-204",
            "lex: note mina slt-204\nlex: ticket SLT-204\nlex: Mina letter\n"
            "vec: a letter about a ticket\nvec: Mina's words on SLT-204\n"
            "hyde: Harper wrote that the ticket is closed.\n",
        )
        assert kept == ["note mina slt-204", "Mina's words on SLT-204"]
        assert dropped == 4

    def test_a_negated_query_has_no_other_wording_that_is_not(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.add(
            "cheerful",
            "lex: key cellar\nlex: spare key never cellar\nvec: keys that hang in the cellar\n"
            "vec: where the key isn't in the cellar\nhyde: The key is in the cellar.\n",
        )
        reported = stage(asked(notes, "spare key not in the cellar", expander="cheerful"))
        assert reported["variants"] == [
            "lex: spare key never cellar",
            "vec: where the key isn't in the cellar",
        ]

    def test_what_was_dropped_is_counted_by_reason(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.add(
            "guarded",
            "lex: Mina cellar never\nlex: second key not\nlex: Mina key\n"
            "vec: what Mina never kept\nvec: What Mina never kept\n",
        )
        reported = stage(asked(notes, "key that Mina never had -cellar", expander="guarded"))
        assert reported["variants"] == ["vec: what Mina never kept"]
        assert reported["dropped"] == 4
        assert reported["dropped_for"] == {
            "excluded word": 1,
            "name missing": 1,
            "negation missing": 1,
            "repeated": 1,
        }

    @pytest.mark.parametrize(
        ("query", "language", "wording", "kept"),
        [
            ("a cake without sugar", "en", "cake no sugar", True),
            ("a cake without sugar", "en", "a sweet cake", False),
            ("a cake with sugar", "en", "a sweet cake", True),
            ("why doesn’t it start", "en", "why it starts", False),
            ("why doesn’t it start", "en", "it won't start", True),
            ("Kuchen ohne Zucker", "de", "zuckerfreier Kuchen", False),
            ("Kuchen ohne Zucker", "de", "Kuchen mit keinem Zucker", True),
            ("alle außer Harper", "de", "Harper und alle", False),
            ("alle außer Harper", "de", "nicht Harper, sonst alle", True),
            ("un gâteau sans sucre", "fr", "gâteau sucré", True),  # no list of French negations
        ],
    )
    def test_what_counts_as_a_negation(
        self, query: str, language: str, wording: str, kept: bool
    ) -> None:
        assert keeps_negation(wording, query, language) is kept

    def test_repetitions_and_empty_wordings_are_dropped(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        kept, dropped = self.said(
            notes,
            language_models,
            "the spare key",
            "lex: keys spare\nlex: …!\nlex: second key\nvec: The Spare  Key\nvec: two keys\n",
        )
        assert (kept, dropped) == (["second key", "two keys"], 3)

    @pytest.mark.parametrize(
        ("query", "language", "found"),
        [
            ("Where is Mina Petersen's key?", "en", ["Mina", "Petersen's"]),
            ("Harper called. Then Mina came", "en", ["Mina"]),
            ("Harper address", "en", ["Harper"]),
            ("Harper: address", "en", ["Harper"]),
            ("Harper Lee's address", "en", ["Harper", "Lee's"]),
            ("Find Harper address", "en", ["Harper"]),
            ("Paint the hall.", "en", []),
            ("what did I promise, and what I'll do", "en", []),
            ("Harper osoite", "xx", []),
            ("wo wohnt Anna Schmidt", "de", ["Anna", "Schmidt"]),
            ("Wann kommt Anna Schmidt-Bauer?", "de", ["Anna", "Schmidt-Bauer"]),
            ("Rechnung Heizung März", "de", []),
            ("Zeige Rechnung vom März", "de", []),
            ("Rezept für Kaffee, Tee und Kakao", "de", []),
            ("die Adresse von Anna", "de", []),
            ("what does getUserById do", "en", ["getUserById"]),
            ("the NASA budget of 1969", "en", ["NASA", "1969"]),
            ("WHERE IS THE KEY", "en", []),
            ("WHERE IS KEY 7", "en", ["7"]),
            ("wo ist der Schlüssel für Haus 7b", "de", ["7b"]),
            ("read /etc/my_hosts now", "en", ["/etc/my_hosts"]),
        ],
    )
    def test_what_counts_as_a_name(self, query: str, language: str, found: list[str]) -> None:
        assert names(query, language) == found
        assert keeps_names(query.lower(), query, language)
        assert keeps_names("something else", query, language) == (not found)
