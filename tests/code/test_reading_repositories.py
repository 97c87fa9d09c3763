"""Outlines, symbols, impact, context and parts of files, as the store answers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from memory_store.code import grammars
from memory_store.errors import BadInputError, LockedError, NotFoundError
from memory_store.index.kinds import KINDS
from memory_store.index.outlines import OUTLINES
from memory_store.records import MemoryDraft, SearchResult
from memory_store.scopes import Scope
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore

BOXES = '''"""Boxes of the shop."""

from shop import keys
from shop.keys import Key

LIMIT = 10


class ZanzibarBox:
    """What is shut."""

    @property
    def lid(self):
        first = keys.turn(self)
        second = first
        return second

    def open(self, key: Key):
        return keys.turn(key)


def shut(box: ZanzibarBox):
    box.open(None)
    box.lid()
    return box
'''
TREE = {
    "src/shop/__init__.py": "from shop.boxes import ZanzibarBox\n",
    "src/shop/boxes.py": BOXES,
    "src/shop/keys.py": "class Key:\n    pass\n\n\ndef turn(one):\n    return Key()\n",
    "src/shop/main.py": "from shop import ZanzibarBox\n\n\ndef main():\n    ZanzibarBox().open()\n",
    "tests/test_boxes.py": "from shop.boxes import ZanzibarBox\n\nZanzibarBox()\n",
    "web/open.js": "import { turn } from './turn.js';\nexport function open() { turn(); }\n",
    "web/turn.js": "export function turn() {}\n",
    "Makefile": "all:\n\techo 1\n",
}


@pytest.fixture(scope="module")
def shop(module_store: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    """A vault with a repository, and a note."""
    folder = tmp_path_factory.mktemp("code")
    for name, text in TREE.items():
        file = folder / "repo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "repo" / ".git").mkdir()
    module_store.import_paths([folder / "repo"], collection="shop", embed=False)
    note = MemoryDraft("A note on boxes.", title="boxes", collection="notes")
    module_store.add_many([note], embed=False)
    return module_store


def test_a_symbol_is_found_with_what_it_stands_in_and_who_uses_it(shop: MemoryStore) -> None:
    found = shop.code.symbols("ZanzibarBox.open")
    (one,) = found.definitions
    assert (one.file, one.line, one.kind, one.path) == (
        *("src/shop/boxes.py", 18, "method"),
        "ZanzibarBox.open",
    )
    assert one.signature == "def open(self, key: Key)"
    assert {use.file: (use.lines, use.callers) for use in found.uses} == {
        "src/shop/boxes.py": ((23,), ("shut",)),
        "src/shop/main.py": ((5,), ("main",)),
    }
    assert found.references == 2


def test_the_first_question_about_a_name_is_answered_as_all_later_ones(shop: MemoryStore) -> None:
    shop.code.context()  # now all files are known
    names = {one.name for one in shop.code.every_symbol()}
    key = shop.path.parents[1] / "keys" / "notes.key"
    for name in (*sorted(names), "ZANZIBARBOX", "ZanzibarBox.open", "ZanzibarBox.lid"):
        with MemoryStore.open(shop.path, key_file=key) as other:
            assert other.code.symbols(name) == shop.code.symbols(name)
            assert other.code.references(name) == shop.code.references(name)
    with MemoryStore.open(shop.path, key_file=key) as other:
        assert other.code.symbols("turn", collection="shop").files == 8
        with pytest.raises(NotFoundError, match="no source code"):
            other.code.symbols("turn", collection="notes")


def test_callers_are_the_innermost_ones_and_of_many_the_first(
    store: MemoryStore, tmp_path: Path
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    inner = "class Outer:\n    def one(self):\n        def deep():\n            used()\n"
    after = "        used()\n\n    used()\n\nused()\n"
    (tmp_path / "repo" / "a.py").write_text(f"def used():\n    pass\n\n{inner}{after}")
    many = "".join(f"def f{number}():\n    used()\n\n" for number in range(30))
    (tmp_path / "repo" / "b.py").write_text(many)
    store.import_paths([tmp_path / "repo"], embed=False)
    of = {one.file: one for one in store.code.symbols("used").uses}
    assert of["a.py"].callers == ("Outer.one.deep", "Outer.one", "Outer")
    assert (len(of["b.py"].lines), of["b.py"].callers[-1]) == (30, "f19")


def test_definitions_of_a_name_are_all_listed_those_of_the_code_itself_first(
    shop: MemoryStore,
) -> None:
    places = [(one.file, one.path) for one in shop.code.symbols("open").definitions]
    assert places == [("web/open.js", "open"), ("src/shop/boxes.py", "ZanzibarBox.open")]
    assert [one.file for one in shop.code.symbols("zanzibarbox").definitions] == [
        "src/shop/boxes.py"
    ]


def test_a_symbol_that_is_not_there_names_alike_ones(shop: MemoryStore) -> None:
    with pytest.raises(NotFoundError, match=r"'ZanzibarBax' is defined in 8 files.*ZanzibarBox"):
        shop.code.symbols("ZanzibarBax")
    with pytest.raises(NotFoundError, match=r"of that name there is: ZanzibarBox\.open, open"):
        shop.code.symbols("Key.open")
    with pytest.raises(BadInputError, match="the name of a symbol"):
        shop.code.symbols(" :: ")


def test_an_outline_has_lines_imports_and_who_imports_it(shop: MemoryStore) -> None:
    found = shop.code.outline("boxes.py")
    assert [(one.name, one.line, one.end_line, one.depth) for one in found.symbols] == [
        *(("LIMIT", 6, 6, 0), ("ZanzibarBox", 9, 19, 0), ("lid", 12, 16, 1)),
        *(("open", 18, 19, 1), ("shut", 22, 25, 0)),
    ]
    assert (found.file, found.language, found.lines) == ("src/shop/boxes.py", "python", 25)
    assert found.imports == ("src/shop/keys.py",)
    assert found.imported_by == ("src/shop/__init__.py", "tests/test_boxes.py")
    assert found == shop.code.outline(found.id)


def test_a_file_that_is_not_there_names_alike_ones(shop: MemoryStore) -> None:
    with pytest.raises(NotFoundError, match=r"no file 'src/boxs.py'.*src/shop/boxes.py"):
        shop.code.outline("src/boxs.py")
    with pytest.raises(NotFoundError, match="no file 'boxes'"):  # a note is no source code
        shop.code.read("boxes")


def test_who_depends_on_a_file_is_listed_by_steps(shop: MemoryStore) -> None:
    found = shop.code.impact("src/shop/keys.py")
    assert [(one.file, one.hops) for one in found.files] == [
        ("src/shop/boxes.py", 1),
        *(("src/shop/__init__.py", 2), ("tests/test_boxes.py", 2)),
        ("src/shop/main.py", 3),
    ]
    near = shop.code.impact("src/shop/keys.py", hops=1)
    assert [one.file for one in near.files] == ["src/shop/boxes.py"]


def test_who_depends_on_a_symbol_uses_its_name_and_can_mean_it(shop: MemoryStore) -> None:
    found = shop.code.impact("turn")
    assert (found.kind, found.starts) == ("symbol", ("src/shop/keys.py", "web/turn.js"))
    direct = {one.file: one.lines for one in found.files if one.hops == 1}
    assert direct == {"src/shop/boxes.py": (14, 19), "web/open.js": (1, 2)}
    (inside, *_) = shop.code.impact("ZanzibarBox").files
    assert (inside.file, inside.hops, inside.lines) == ("src/shop/boxes.py", 0, (22,))
    with pytest.raises(NotFoundError, match="no file and no symbol 'nowhere'"):
        shop.code.impact("nowhere")
    with pytest.raises(BadInputError, match="from 1 to 10"):
        shop.code.impact("turn", hops=0)


def test_lines_of_a_file_are_read_whole_functions_if_asked(shop: MemoryStore) -> None:
    some = shop.code.read("src/shop/boxes.py:14-15")
    assert some.text == "        first = keys.turn(self)\n        second = first\n"
    whole = shop.code.read("src/shop/boxes.py:14-15", snap="function")
    assert (whole.line, whole.end_line) == (12, 16)
    assert whole.text.startswith("    @property\n    def lid(self):\n")
    assert shop.code.read("boxes.py").text == BOXES.rstrip()


@pytest.mark.parametrize(
    ("line", "lines"),
    [(9, (9, 19)), (10, (10, 10)), (6, (6, 6)), (8, (8, 8)), (22, (22, 25))],
)
def test_a_class_is_read_whole_by_its_first_line_alone(
    shop: MemoryStore, line: int, lines: tuple[int, int]
) -> None:
    found = shop.code.read(f"boxes.py:{line}", snap="function")
    assert (found.line, found.end_line) == lines


def test_a_skeleton_names_the_lines_that_it_leaves_out(shop: MemoryStore) -> None:
    found = shop.code.read("boxes.py", skeleton=True)
    assert "    def lid(self):\n        … 14-16\n\n    def open(self, key: Key):\n" in found.text
    assert "first = keys" not in found.text
    assert "class ZanzibarBox:" in found.text


def test_a_budget_ends_at_a_line_and_says_where_to_go_on(shop: MemoryStore) -> None:
    parts, place = [], "boxes.py"
    while True:
        found = shop.code.read(place, budget=40)
        assert found.spent <= 40
        parts.append(found.text)
        if found.next is None:
            break
        place = found.next
    assert len(parts) > 2
    assert "".join(parts) == BOXES.rstrip()
    with pytest.raises(BadInputError, match=r"3 tokens does not hold line 1 of src/shop/boxes.py"):
        shop.code.read("boxes.py", budget=3)


def test_a_file_that_did_not_change_is_not_sent_again(shop: MemoryStore) -> None:
    first = shop.code.read("boxes.py")
    again = shop.code.read("boxes.py", if_changed=first.hash)
    assert (again.unchanged, again.text, again.hash) == (True, "", first.hash)
    assert shop.code.read("boxes.py", if_changed="0" * 16).text == BOXES.rstrip()


@pytest.mark.parametrize("place", ["boxes.py:0", "boxes.py:9-3", "boxes.py:99"])
def test_lines_that_are_not_there_are_refused(shop: MemoryStore, place: str) -> None:
    with pytest.raises(BadInputError, match="line"):
        shop.code.read(place)
    with pytest.raises(BadInputError, match="no 'class'"):
        shop.code.read("boxes.py", snap="class")


def test_a_repository_is_known_in_a_budget(shop: MemoryStore) -> None:
    found = shop.code.context()
    assert (found.files, found.languages) == (8, {"python": 5, "javascript": 2, "make": 1})
    assert found.entry_points == ("Makefile", "src/shop/main.py")
    most = found.most_imported[0]
    assert (most.file, most.imported_by, most.symbols) == (
        *("src/shop/boxes.py", 2),
        ("LIMIT", "ZanzibarBox", "shut"),
    )
    small = shop.code.context(budget=50)
    assert small.spent <= 50
    assert small.left_out
    with pytest.raises(BadInputError, match="give 50 or more"):
        shop.code.context(budget=3)


def test_files_of_two_repositories_are_told_apart(store: MemoryStore, tmp_path: Path) -> None:
    for name in ("shop", "mill"):
        folder = tmp_path / name / "src"
        folder.mkdir(parents=True)
        (folder.parent / ".git").mkdir()
        (folder.parent / "pyproject.toml").write_text(f"[project]\nname = '{name}'\n")
        for user in "abc":
            (folder / f"{user}.py").write_text(f"from src.{name} import turn\nturn()\n")
        (folder / f"{name}.py").write_text("def turn():\n    pass\n")
        store.import_paths([tmp_path / name], embed=False)
    found = store.code.context()
    assert found.entry_points == ("mill/pyproject.toml", "shop/pyproject.toml")
    assert found.folders == {"mill/src": 4, "shop/src": 4, "mill": 1, "shop": 1}
    assert [one.file for one in found.most_imported] == ["mill/src/mill.py", "shop/src/shop.py"]
    with pytest.raises(BadInputError, match=r"2 files are called .*: mill/pyproject\.toml \("):
        store.code.outline("pyproject.toml")
    assert store.code.read("mill/pyproject.toml").text.endswith("name = 'mill'")
    assert store.code.outline("shop/src/shop.py").symbols[0].name == "turn"


def test_every_answer_says_how_many_memories_it_opened(shop: MemoryStore) -> None:
    found = shop.code.outline("boxes.py")
    assert found.opened == shop.code.symbols("turn").opened == shop.code.context().opened == 0
    assert shop.code.read(found.id).opened == 1
    heard: list[tuple[str, int, int]] = []
    shop.report_to(lambda *event: heard.append(event))
    shop.code.read("boxes.py")
    shop.report_to(None)
    assert heard == [("read", 1, 1)]


def test_a_change_is_followed(shop: MemoryStore) -> None:
    text = "def brand_new():\n    shut(1)\n"
    draft = MemoryDraft(text, type="code", ref="new.py", collection="shop")
    (made,) = shop.add_many([draft], embed=False)
    assert [one.file for one in shop.code.symbols("brand_new").definitions] == ["new.py"]
    shop.delete(made.id)
    with pytest.raises(NotFoundError):
        shop.code.symbols("brand_new")


def test_nothing_of_what_may_not_be_read_is_in_any_answer(shop: MemoryStore) -> None:
    notes, code = (shop.collections.find(name) for name in ("notes", "shop"))
    others = (
        shop.limited_to(Scope.of([notes])),
        shop.limited_to(Scope.of([notes, code]), readable=Scope.of([notes])),
    )
    for view in others:
        assert not view.code.present()
        for ask in (
            view.code.context,
            lambda view=view: view.code.symbols("ZanzibarBox"),
            lambda view=view: view.code.outline("boxes.py"),
            lambda view=view: view.code.impact("turn"),
            lambda view=view: view.code.read("boxes.py"),
        ):
            with pytest.raises(NotFoundError, match="no source code in here"):
                ask()
        assert [*view.code.every_symbol(), *view.code.every_use()] == []
    assert shop.code.present()


def test_a_refusal_names_what_is_alike_among_what_may_be_read(shop: MemoryStore) -> None:
    text = "def zanzibar_tin():\n    return 1\n"
    draft = MemoryDraft(text, type="code", ref="boxen.py", collection="other")
    shop.add_many([draft], embed=False)
    known, hidden = (shop.collections.find(name) for name in ("other", "shop"))
    for view in (
        shop.limited_to(Scope.of([known])),
        shop.limited_to(Scope.of([known, hidden]), readable=Scope.of([known])),
    ):
        for ask, given in (
            (view.code.outline, "boxes.py"),
            (view.code.read, "boxes.py:1-2"),
            (view.code.impact, "boxes.py"),
            (view.code.symbols, "ZanzibarBox"),
            (view.code.symbols, "ZanzibarBox.open"),
            (view.code.references, "zanzibar_bin"),
        ):
            with pytest.raises(NotFoundError) as refused:
                ask(given)
            said = str(refused.value).replace(given.partition(":")[0], "")
            assert "boxes" not in said, given
            assert "Zanzibar" not in said, given
        with pytest.raises(NotFoundError, match=r"there is: boxen\.py"):
            view.code.outline("boxes.py")
        with pytest.raises(NotFoundError, match="there is: zanzibar_tin"):
            view.code.symbols("zanzibar_bin")


def test_tables_have_every_definition_and_every_use(shop: MemoryStore) -> None:
    assert ("src/shop/keys.py", "Key", 1) in {
        (one.file, one.name, one.line) for one in shop.code.every_symbol()
    }
    uses = {(one.name, one.file, one.line) for one in shop.code.every_use()}
    assert ("turn", "web/open.js", 2) in uses
    assert not any(name == "echo" for name, _, _ in uses)


def test_a_locked_vault_answers_nothing(tmp_path: Path, store: MemoryStore) -> None:
    store.add("def a_b(): pass\n", type="code", ref="a.py")
    assert store.code.symbols("a_b").opened == 0
    store.lock()
    with pytest.raises(LockedError):
        store.code.symbols("a_b")


def test_a_vault_of_before_outlines_answers_the_same_and_opens_for_it(
    store: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.delitem(RECORDS, OUTLINES.name)
        before.delitem(KINDS, OUTLINES.name)
        draft = MemoryDraft("def ab_initio(): pass\n", type="code", ref="a.py")
        store.add_many([draft, MemoryDraft("A note.")], embed=False)
    found = store.code.symbols("ab_initio")
    assert ([one.file for one in found.definitions], found.opened) == (["a.py"], 1)
    assert store.reindex() == 2
    again = store.code.symbols("ab_initio")
    assert (again.definitions, again.opened) == (found.definitions, 0)
    assert store.verify()["failures"] == []


def test_a_vault_of_before_descriptions_gets_them_by_a_reindex(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        made = RECORDS[OUTLINES.name]
        shorter = lambda *given: msgpack.decode(msgpack.encode(made(*given)))[:6]  # noqa: E731
        before.setitem(RECORDS, OUTLINES.name, shorter)
        text = "# Turns the zanzibar of a box.\ndef turn(box): pass\n"
        draft = MemoryDraft(text, type="code", ref="a.py")
        store.add_many([draft, MemoryDraft("A note.")])
    assert (described(store), store.verify()["failures"]) == ([(), ()], [])
    assert (store.reindex(), store.reindex()) == (1, 0)
    assert sorted(described(store)) == [(), ("turn zanzibar box",)]


def described(store: MemoryStore) -> list[tuple[str, ...]]:
    context = store.search_context()
    return [
        tuple(context.descriptions(ordinal))
        for ordinal in context.snapshot.alive.nonzero()[0].tolist()
    ]


def test_files_that_were_indexed_without_grammars_are_read_again_when_there_are_some(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(grammars, "installed", lambda: False)
        text = "import os\nclass Box:\n    def open(self): pass\n"
        draft = MemoryDraft(text, type="code", ref="a.py")
        other = MemoryDraft("open: box\n", type="code", ref="box.unheard-of")
        store.add_many([draft, other], embed=False)
    found = store.code.symbols("Box.open")
    assert found.opened == 1  # no grammar knows more of the other one


def test_a_result_shows_its_lines_and_definition_by_what_was_kept_when_it_was_indexed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "        step = 1\n" * 200
    text = f"class Zanzibar:\n    def open(self):\n{body}        return quixotic\n"
    meta = {"language": "python"}
    store.add_many([MemoryDraft(text, type="code", ref="a.py", metadata=meta)], embed=False)
    (found,) = store.search("quixotic", mode="keyword").rows
    assert found.symbol == "Zanzibar.open"  # without a grammar it would end with its line
    monkeypatch.setattr(grammars, "installed", lambda: False)  # so that nothing can be parsed
    (again,) = store.search("quixotic", mode="keyword").rows
    assert (again.line, again.end_line, again.symbol) == (found.line, found.end_line, found.symbol)
    assert again.passages == found.passages


def test_a_result_shows_the_lines_that_use_the_whole_name(store: MemoryStore) -> None:
    filler = "        step = 1\n" * 90
    text = (
        f"class Zanzibar:\n    def push(self):\n        one.open_lid()\n{filler}\n"
        f"    def open(self):\n        lid = 1\n{filler}"
    )
    meta = {"language": "python"}
    store.add_many([MemoryDraft(text, type="code", ref="a.py", metadata=meta)], embed=False)
    (row,) = store.search("open_lid", mode="keyword").rows
    assert (row.line, row.symbol) == (1, "Zanzibar.push")
    assert [row.preview[start:end] for start, end in row.passages[0].highlights] == ["open_lid"]


def test_a_passage_is_chosen_and_named_by_the_words_that_names_are_made_of(
    store: MemoryStore,
) -> None:
    filler = "        step = 1\n" * 90
    text = (
        f'class Zanzibar:\n    """Kept in signed cookies."""\n\n    def push(self):\n{filler}\n'
        f"class ZanzibarCookies(Zanzibar):\n    def signing_key(self):\n{filler}"
    )
    meta = {"language": "python"}
    store.add_many([MemoryDraft(text, type="code", ref="a.py", metadata=meta)], embed=False)
    for query, symbol in (
        ("where are zanzibar cookies signed", "ZanzibarCookies.signing_key"),
        ("signing_key", "ZanzibarCookies.signing_key"),
        ("push", "Zanzibar.push"),
    ):
        (row,) = store.search(query, mode="keyword").rows
        assert row.symbol == symbol


CALLS = (("one", "lid"), ("open_lid", "open_lid"), ("two", "other"), ("three", "open_lid"))
USES = "".join(
    f"def {name}(box):\n{'    step = 1~' * 200}    box.{call}()~~~" for name, call in CALLS
).replace("~", "\n")


def uses_of_a_lid(store: MemoryStore, **options: Any) -> SearchResult:
    draft = MemoryDraft(USES, type="code", ref="a.py", metadata={"language": "python"})
    store.add_many([draft], embed=False)
    (row,) = store.search("open_lid", mode="keyword", **options).rows
    return row


def test_a_result_has_its_best_passages_and_is_shown_by_the_first(store: MemoryStore) -> None:
    row = uses_of_a_lid(store)
    first = row.passages[0]
    assert 1 < len(row.passages) <= 3
    assert (row.preview, row.line, row.end_line, row.symbol) == (
        first.text,
        first.line,
        first.end_line,
        first.symbol,
    )
    assert row.symbol == "open_lid"  # in the name of a definition a word counts again
    assert "three" in {one.symbol for one in row.passages[1:]}
    lines = USES.split("\n")
    for one in row.passages:
        assert one.line is not None
        assert one.end_line is not None
        assert "\n".join(lines[one.line - 1 : one.end_line]) == one.text.rstrip()
        assert {one.text[a:b] for a, b in one.highlights} <= {"open_lid", "lid"}
        assert one.highlights  # what holds nothing asked for is no passage
    assert [one["line"] for one in row.as_dict()["passages"]] == [one.line for one in row.passages]


def test_a_budget_buys_the_best_passage_alone(store: MemoryStore) -> None:
    row = uses_of_a_lid(store, budget=4_000)
    assert [one.symbol for one in row.passages] == ["open_lid"]


SECRETS = ("zanzibar", "quixotic", "src/hidden", "MumbleImport", "frobnicate", "wigwam", "flamingo")


def test_nothing_of_an_outline_stands_in_the_file(store: MemoryStore, tmp_path: Path) -> None:
    text = (
        "from src.hidden import MumbleImport\n\n# wigwam\nclass Zanzibar:\n"
        '    def quixotic(self):\n        """Flamingo."""\n        return frobnicate()\n'
    )
    draft = MemoryDraft(text, type="code", ref="src/hidden/zanzibar.py", source="/home/quixotic")
    store.add_many([draft], embed=False)
    assert store.code.symbols("quixotic").definitions[0].file == "src/hidden/zanzibar.py"
    files = [one for one in store.path.parent.iterdir() if one.is_file()]
    written = b"".join(one.read_bytes() for one in files).lower()
    assert len(written) > 10_000
    for secret in SECRETS:
        assert secret.lower().encode() not in written
