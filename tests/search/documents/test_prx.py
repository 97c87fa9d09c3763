"""prx, "Search Pipeline": what it says of text, the figure, and how that is seen here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from bench import Bench, Statement, as_said, candidate, each_of, found, steps

from memory_store.code.facts import path_kinds
from memory_store.records import Memory, MemoryDraft, SearchRequest
from memory_store.search.answer.response import spend
from memory_store.search.candidates import LegList, Scored
from memory_store.search.fusion.leg_weights import LegEvidence, leg_factors
from memory_store.search.fusion.rank_fusion import fuse
from memory_store.search.query.language import is_symbol_like, resolve_mode
from memory_store.search.recipes import PRX
from memory_store.search.reranking.file_rules import (
    MemoryFile,
    SourceFacts,
    by_file_rules,
    coherent,
    defining_first,
    file_of,
    near_first,
    saturated,
    stem_matched,
    without_noise,
)
from memory_store.text.identifiers import name_terms, path_terms
from memory_store.text.token_count import estimated, tokens

# -- how things are seen --------------------------------------------------------------------


def search(store: Any, query: str = "winter garden", **options: Any) -> Any:
    return store.search(query, **{"recipe": "prx", "explain": True, **options})


def auto(query: str) -> str:
    return resolve_mode(SearchRequest(query, mode="auto"))


def bm25_as_said(bench: Bench) -> bool:
    """Whether keyword scores are Robertson's with k1 1.5 and b .75."""
    texts = ["pear " * (n % 4) + "plum " * (n % 3) + "filler " * n for n in range(1, 30)]
    store = bench.vault(MemoryDraft(text.strip(), title="", ref=text) for text in texts)
    words = {text: text.split() for text in texts}
    mean = sum(map(len, words.values())) / len(texts)
    rows = search(store, "pear plum", mode="keyword", limit=32).rows
    assert len(rows) > 20

    def robertson(text: str) -> float:
        total = 0.0
        for term in ("pear", "plum"):
            holding = sum(term in one for one in words.values())
            idf = max(math.log((len(texts) - holding + 0.5) / (holding + 0.5)), 1e-6)
            count = words[text].count(term)
            norm = 1.5 * (1 - 0.75 + 0.75 * len(words[text]) / mean)
            total += idf * count * 2.5 / (count + norm)
        return total

    return all(
        row.score == pytest.approx(robertson(row.ref) / (1 + robertson(row.ref)), abs=1e-5)
        for row in rows
    )


def share(symbol_like: bool, leg: str) -> float:
    return math.prod(leg_factors(PRX, LegEvidence("en", symbol_like=symbol_like))[leg].values())


def first_place(symbol_like: bool, *legs: str) -> float:
    """The fused score of what stands first in these legs, of both."""
    lists = [
        LegList(leg, (1,) if leg in legs else (), weight=share(symbol_like, leg))
        for leg in ("keyword", "vector")
    ]
    return fuse(lists, PRX, types={1: "code"}, tie_break=lambda _: {1: (1,)})[0].score


def result(ref: str | None, score: float, source: str | None = "/repo", number: int = 0) -> Scored:
    """One opened result of a file."""
    stamp = "2024-01-01"
    memory = Memory(str(ref), "c", "code", "", "", (), stamp, stamp, ref=ref, source=source)
    return Scored(candidate(number, share=score), score, memory)


def pool(*files: tuple[str | None, float]) -> list[Scored]:
    return [result(ref, score, number=number) for number, (ref, score) in enumerate(files)]


def scores(results: Sequence[Scored]) -> list[float]:
    return [round(one.score, 6) for one in results]


COHERENT = pool(("a.py#1", 0.6), ("b.py", 0.5), ("a.py#2", 0.4), ("c.py#1", 0.3), ("c.py#2", 0.2))


def definition_factor(symbol_like: bool, ref: str) -> float:
    """The factor on the first of two files, which defines the name that is asked for."""
    facts = SourceFacts({"parcel": {0}}, symbol_like)
    raised = scores(defining_first(pool((ref, 0.1), ("b.py", 0.1)), facts, PRX))
    assert raised[1] == 0.1
    return round(raised[0] / 0.1, 6)


def proximity_boosts() -> list[float]:
    """What two files gain, of which the first is one import away from the first results."""
    files = pool(*((f"{n}.py", 1.0) for n in range(5)), ("near.py", 0.1), ("far.py", 0.1))
    ids = [one.candidate.id for one in files]
    facts = SourceFacts(near=lambda first: {ids[5]: 1, ids[6]: 2} if first == ids[:5] else {})
    raised = near_first(files, facts, PRX.proximity)
    assert scores(raised[:5]) == [1.0] * 5
    return [round(one.score - 0.1, 6) for one in raised[5:]]


def code_repository(bench: Bench) -> Any:
    """What defines a name, five files with many words of it, and one that imports the first."""
    texts = {
        "parcel.py": "class openParcel:\n    pass\n",
        "sender.py": "import parcel\n\n\ndef send():\n    return parcel.openParcel\n",
        **{f"notes{n}.py": f"# openParcel {n}\n" * 9 for n in range(5)},
    }
    return bench.vault(
        (
            MemoryDraft(
                text, type="code", source="/repo", ref=path, metadata={"language": "python"}
            )
            for path, text in texts.items()
        ),
        embed=False,
    )


def steps_of_code(bench: Bench) -> list[list[str]]:
    """The steps of what defines the name, and of what imports that."""
    response = search(code_repository(bench), "openParcel", limit=10)
    names = ("definition", "import proximity", "stem match")
    return [
        [name for name in steps(response, ref) if name in names]
        for ref in ("parcel.py", "sender.py")
    ]


def stem_boosts(ref: str, *keywords: str) -> float:
    """What a keyword match in a path adds, the highest score being 1."""
    results = stem_matched(pool(("other.rs", 1.0), (ref, 0.1)), keywords, 1.5, 0.1)
    return round(results[1].score - 0.1, 6)


def penalty(ref: str) -> float:
    """The factor on a file for what its path says of it."""
    return round(without_noise(pool((ref, 1.0)), PRX.noise)[0].score, 6)


def decayed(number: int) -> float:
    """The factor on the ``number``-th memory of one file."""
    return saturated(pool(*((f"a.py#{n}", 1.0) for n in range(4))), 0.5)[number - 1].score


def repository(bench: Bench) -> Any:
    """A small repository, two chunks to a file."""
    paths = ("src/garden.py", "src/kitchen.py", "tests/test_garden.py", "docs/compat/garden.md")
    return bench.vault(
        MemoryDraft(
            f"winter garden, as {n} says of {path[::-1]}", source="/repo", ref=f"{path}#{n}"
        )
        for path in paths
        for n in range(2)
    )


def order_of_stages(bench: Bench) -> list[list[str]]:
    """The steps of the two chunks of a test file, in their order."""
    response = search(repository(bench), limit=10)
    rows = [str(row.ref) for row in response.rows if str(row.ref).startswith("tests/")]
    return [[name for name in steps(response, ref) if name != "scaled to 1"] for ref in rows]


def best_file(bench: Bench) -> str:
    return str(search(repository(bench)).rows[0].ref).partition("#")[0]


def whole_pool(bench: Bench) -> bool:
    """Whether everything both legs found is looked at, and the answer cut to the limit."""
    drafts = [MemoryDraft(f"winter {n}") for n in range(70)]
    drafts += [MemoryDraft(f"{'garden ' * (n % 5 + 1)}{n}") for n in range(70)]
    response = search(bench.vault(drafts), limit=5)
    (fuse,) = (report for report in response.explain if report.stage == "fuse")
    assert len(response.rows) == 5
    return bool(25 <= response.opened == fuse.details["pool"] == fuse.details["candidates"] <= 50)


def spent(bench: Bench, budget: int) -> tuple[list[str], bool]:
    """The results that fit a budget, and whether what they hold is a ceiling kept."""
    texts = ["pear", "pear " * 60, "pear tree"]
    store = bench.vault((MemoryDraft(text.strip(), title="") for text in texts), embed=False)
    response = search(store, "pear", budget=budget)
    shown = [row.preview for row in response.rows]
    return sorted(shown), sum(map(tokens, shown)) <= budget


def paged(bench: Bench) -> int:
    """How many different results three pages of a search have."""
    store, token, seen = bench.gardens(15), None, set()
    for _ in range(3):
        page = search(store, limit=5, continue_=token)
        seen |= {row.id for row in page.rows}
        token = page.next
    return len(seen)


# -- the document ---------------------------------------------------------------------------

STATEMENTS: list[Statement] = [
    # Auto-detection, as settled: one token that looks like an identifier or a pattern
    ("a symbol is literal", "literal", lambda b: auto("get_user_by_id")),
    ("a token with a metacharacter is literal", "literal", lambda b: auto("time.*out")),
    ("a pattern between slashes is literal", "literal", lambda b: auto("/fn \\w+/")),
    ("metavariables are structural", "structural", lambda b: auto("fn $NAME($$$)")),
    ("natural language is hybrid", "hybrid", lambda b: auto("where are users stored")),
    ("so is one plain word (prx: literal)", "hybrid", lambda b: auto("authentication")),
    ("and a question with its mark (prx: literal)", "hybrid", lambda b: auto("where is it?")),
    # BM25
    ("Robertson BM25, k1 1.5 and b .75", True, bm25_as_said),
    (
        "a compound identifier and its parts",
        ["gethttpresponse", "get", "http", "response"],
        lambda b: [*name_terms("getHTTPResponse")],
    ),
    ("the file stem is added twice", 2, lambda b: path_terms("/r", "a/auth.rs").count("auth")),
    (
        "and the last three folders",
        ["a", "b", "c"],
        lambda b: [t for t in path_terms("/r", "z/a/b/c/auth.rs") if t != "auth"],
    ),
    # Reciprocal rank fusion
    ("α for symbol-like queries", 0.3, lambda b: share(True, "vector")),
    ("α for other queries", 0.5, lambda b: share(False, "vector")),
    ("1 − α is the keywords'", 0.7, lambda b: share(True, "keyword")),
    ("Foo::bar is symbol-like", True, lambda b: is_symbol_like("Foo::bar")),
    ("_private is symbol-like", True, lambda b: is_symbol_like("_private")),
    ("getUserById is symbol-like", True, lambda b: is_symbol_like("getUserById")),
    ("a sentence is not", False, lambda b: is_symbol_like("get the user by id")),
    ("first in both, k 60", 1 / 61, lambda b: first_place(False, "vector", "keyword")),
    ("first by vector, a symbol", 0.3 / 61, lambda b: first_place(True, "vector")),
    ("first by keyword, a symbol", 0.7 / 61, lambda b: first_place(True, "keyword")),
    ("first by keyword, a sentence", 0.5 / 61, lambda b: first_place(False, "keyword")),
    ("keywords fetch top_k × 5", 50, lambda b: found(search(b.gardens(80)), "keyword")),
    ("vectors fetch top_k × 5", 50, lambda b: found(search(b.gardens(80)), "vector")),
    ("the whole pool is reranked, then cut", True, whole_pool),
    # 1. File coherence: max .6 × .2 × aggregate ÷ greatest aggregate (a: 1.0, c: .5)
    ("coherence: the strongest file's best", 0.72, lambda b: scores(coherent(COHERENT, 0.2))[0]),
    ("coherence: half as strong a file's best", 0.36, lambda b: scores(coherent(COHERENT, 0.2))[3]),
    ("coherence: its second stays", 0.2, lambda b: scores(coherent(COHERENT, 0.2))[4]),
    ("coherence: a file with one chunk stays", 0.5, lambda b: scores(coherent(COHERENT, 0.2))[1]),
    # 2. Definitions
    ("definition: a sentence", 4.0, lambda b: definition_factor(False, "a.py")),
    ("definition: a symbol", 12.0, lambda b: definition_factor(True, "a.py")),
    ("definition: a file of that name, too", 18.0, lambda b: definition_factor(True, "Parcel.py")),
    # 3. Import proximity: max 1 × .05 ÷ steps
    ("proximity: one import away, and two", [0.05, 0.025], lambda b: proximity_boosts()),
    (
        "definition, proximity and stem match come in this order",
        [["definition", "stem match"], ["import proximity"]],
        steps_of_code,
    ),
    # 4. Identifier stems: max 1 × match ratio × 1.5
    ("stems: all keywords match", 1.5, lambda b: stem_boosts("src/user_store.py", "user", "store")),
    ("stems: half of them", 0.75, lambda b: stem_boosts("src/user.py", "user", "zeppelin")),
    ("stems: the folder around it counts", 0.75, lambda b: stem_boosts("auth/x.py", "auth", "q")),
    ("stems: no folder above that", 0.0, lambda b: stem_boosts("auth/deep/x.py", "auth", "q")),
    ("stems: by prefix", 1.5, lambda b: stem_boosts("authentication.py", "auth")),
    ("stems: identifiers meet by their words", 1.5, lambda b: stem_boosts("Users.ts", "getUsers")),
    ("stems: one of ten, 10 %, counts", 0.15, lambda b: stem_boosts("user.py", "user", *TEN[1:])),
    ("stems: one of eleven does not", 0.0, lambda b: stem_boosts("user.py", "user", *TEN)),
    # 5. Noise
    ("noise: tests", 0.3, lambda b: penalty("src/test_auth.py")),
    ("noise: compat", 0.3, lambda b: penalty("src/compat/auth.py")),
    ("noise: legacy", 0.3, lambda b: penalty("legacy/auth.py")),
    ("noise: examples", 0.3, lambda b: penalty("examples/auth.py")),
    ("noise: docs", 0.3, lambda b: penalty("docs/auth.md")),
    ("noise: a barrel of Python", 0.5, lambda b: penalty("src/auth/__init__.py")),
    ("noise: a barrel of Java", 0.5, lambda b: penalty("src/auth/package-info.java")),
    ("noise: TypeScript declarations", 0.7, lambda b: penalty("src/auth.d.ts")),
    ("noise: test and compat compound", 0.09, lambda b: penalty("tests/compat/auth.py")),
    ("noise: any other file", 1.0, lambda b: penalty("src/auth.py")),
    # 6. Saturation
    ("saturation: the first of a file", 1.0, lambda b: decayed(1)),
    ("saturation: the second", 0.5, lambda b: decayed(2)),
    ("saturation: the third", 0.25, lambda b: decayed(3)),
    ("saturation: the fourth", 0.125, lambda b: decayed(4)),
    # The pipeline
    (
        "the rules apply in order, to the best of a file and to its second",
        [
            ["file coherence", "stem match", "noise: tests"],
            ["stem match", "noise: tests", "saturation"],
        ],
        lambda b: order_of_stages(b),
    ),
    ("source outranks tests and docs", "src/garden.py", best_file),
    # Budget
    ("four characters are a token", 3, lambda b: estimated("x" * 9)),
    ("what does not fit is skipped, not cut", (["pear", "pear tree"], True), lambda b: spent(b, 9)),
    ("a ceiling no result fits gives none", ([], True), lambda b: spent(b, 1)),
    ("greedily, in order", (0, 2), lambda b: spend([5, 6, 3], 8).taken),
    ("pages follow by a token", 15, paged),
]
TEN = [f"zeppelin{n}" for n in range(10)]


@each_of(STATEMENTS)
def test_prx_says(figure: Any, observe: Callable[[Bench], Any], bench: Bench) -> None:
    assert observe(bench) == as_said(figure)


class TestFilesOfMemories:
    @pytest.mark.parametrize(
        ("source", "ref", "path"),
        [
            ("/home/me/notes", "2024/plan.md", "2024/plan.md"),
            ("/repo", "src/a.py#Handler", "src/a.py"),
            ("/repo", "src/a.py:10-40", "src/a.py"),
            ("/repo", "notes #3.md", "notes #3.md"),
            ("/home/me/notes.csv", "row-17", None),  # a row is a record of its own
            ("/home/me/notes.db#journal", "17", None),
            ("/home/me/feed.JSONL", "a/b.py", None),
            ("-", "stdin-0123456789abcdef", None),
            (None, "src/a.py", None),
            ("/repo", None, None),
            ("/repo", "../a.py", None),
            ("/repo", "/etc/a.py", None),
            ("/repo", "https://example.org/a.py", None),
        ],
    )
    def test_the_file_is_what_source_and_ref_tell(
        self, source: str | None, ref: str | None, path: str | None
    ) -> None:
        found = file_of(result(ref, 1.0, source).memory)  # type: ignore[arg-type]
        assert (found.path if found else None) == path

    def test_what_lies_above_the_imported_folder_says_nothing(self) -> None:
        assert path_kinds(MemoryFile("/home/me/tests/legacy/docs", "auth.py").path) == ()

    def test_a_note_by_name_of_a_test_is_no_test(self) -> None:
        assert path_kinds(MemoryFile("/notes", "blood_test.md").path) == ()

    def test_memories_without_a_file_are_left_alone(self) -> None:
        loose = pool((None, 0.9), (None, 0.6), (None, 0.3))
        assert scores(by_file_rules(loose, PRX, ["user"])) == [0.9, 0.6, 0.3]

    def test_the_same_path_below_two_roots_is_two_files(self) -> None:
        pair = [result("a.py", 0.9, "/one"), result("a.py", 0.8, "/two")]
        assert scores(saturated(pair, 0.5)) == [0.9, 0.8]

    def test_saturation_lets_others_pass(self) -> None:
        order = saturated(pool(("a.py#1", 0.9), ("a.py#2", 0.8), ("b.py", 0.5)), 0.5)
        assert [(one.memory.ref, one.score) for one in order if one.memory] == [
            ("a.py#1", 0.9),
            ("b.py", 0.5),
            ("a.py#2", 0.4),
        ]

    def test_short_names_match_no_longer_words(self) -> None:
        short = pool(("au.py", 1.0))
        assert scores(stem_matched(short, ["authentication"], 0.5, 0.1)) == [1.0]
        assert scores(stem_matched(short, ["au"], 0.5, 0.1)) == [1.5]

    def test_scores_stay_within_one(self) -> None:
        order = by_file_rules(pool(("user.py", 1.0), ("other.py", 0.5)), PRX, ["user"])
        assert scores(order) == [1.0, 0.2]
        assert order[0].steps == (("stem match", 2.5), ("scaled to 1", 1.0))


class TestSealed:
    def test_the_rules_are_left_out_and_it_is_said(self, bench: Bench) -> None:
        response = search(repository(bench), limit=3, sealed=True)
        assert response.opened == 3
        assert any("rules for files" in line for line in response.degraded)

    def test_no_rerank_leaves_fusion_s_order(self, bench: Bench) -> None:
        response = search(repository(bench), limit=3, rerank=False)
        assert response.opened == 3
        assert response.degraded == ()
        assert [row.score for row in response.rows] == [row.fusion_score for row in response.rows]

    def test_the_pool_is_opened_and_counted(self, bench: Bench) -> None:
        response = search(repository(bench), limit=3)
        assert (response.opened, len(response.rows)) == (8, 3)
        assert response.counts == "Reranked 0 of 8, returned 3"

    def test_many_typed_lines_open_no_more_than_a_bound(self, bench: Bench) -> None:
        words = [f"pear{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]}" for n in range(60)]
        store = bench.vault(
            MemoryDraft(f"{word} {copy}", title="", ref=f"{word}-{copy}.py")
            for word in words
            for copy in range(5)
        )
        response = search(store, "\n".join(f"lex: {word}" for word in words), limit=5)
        assert response.opened == 256
