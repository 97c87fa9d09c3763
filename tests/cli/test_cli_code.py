"""``memory-store code``, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typing_commands import Vault, run

SOURCE = """\
class QuixoticBox:
    def open(self, key):
        turned = turn(key)
        return turned


def turn(key):
    return key
"""


def code(vault: Vault, command: str, *words: str) -> Result:
    return run("code", command, str(vault.path), *words, "--key-file", str(vault.key_file))


@pytest.fixture
def shop(empty_vault: Vault, tmp_path: Path) -> Vault:
    """A vault with a repository of two files."""
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "boxes.py").write_text(SOURCE)
    (repo / "app.py").write_text("import boxes\n\nboxes.turn(1)\n")
    assert empty_vault.run("import", str(repo), "--no-embed").exit_code == 0
    return empty_vault


def test_a_repository_is_read_from_the_terminal(shop: Vault) -> None:
    shown = code(shop, "symbols", "QuixoticBox.open").stdout
    assert "boxes.py:2-4 method QuixoticBox.open\n    def open(self, key)\n" in shown
    assert shown.endswith("\n0 memories opened\n")
    shown = code(shop, "outline", "boxes.py").stdout
    assert "        1-4  class QuixoticBox\n        2-4    def open(self, key)\n" in shown
    assert "\nImported by\n  app.py\n" in shown
    assert "  app.py:3\n" in code(shop, "impact", "turn").stdout
    shown = code(shop, "read", "boxes.py", "--skeleton").stdout
    assert "    2      def open(self, key):\n    3          … 3-4\n    5\n" in shown
    shown = code(shop, "context").stdout
    assert shown.startswith("2 files · 11 lines of source code\n")
    assert "\nBegins in\n  app.py\n" in shown


def test_a_result_shows_the_definition_that_is_looked_for(
    empty_vault: Vault, tmp_path: Path
) -> None:
    text = (
        "def open_quixotic(self):\n    return 1\n\n\n\n"
        "def fill_quixotic(self, quixotic: FillQuixotic):\n    pass\n"
    )
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "a.py").write_text(text)
    assert empty_vault.run("import", str(tmp_path / "repo"), "--no-embed").exit_code == 0
    said = empty_vault.run("search", "open_quixotic").stdout
    assert "a.py:1-7 open_quixotic\n       1  def open_quixotic(self):\n" in said


def test_json_has_what_programs_need(shop: Vault) -> None:
    found = json.loads(code(shop, "read", "boxes.py:3", "--snap", "function", "--json").stdout)
    assert (found["line"], found["end_line"], found["opened"]) == (2, 4, 1)
    again = code(shop, "read", "boxes.py", "--if-changed", found["hash"], "--json")
    assert json.loads(again.stdout)["unchanged"] is True


def test_what_is_not_there_is_named(shop: Vault) -> None:
    result = code(shop, "symbols", "QuixoticBoks")
    assert (result.exit_code, "there is: QuixoticBox" in result.stderr) == (1, True)
    result = code(shop, "read", "boxes.py", "--budget", "3")
    assert (result.exit_code, "give 5 or more" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "code_of", "said"),
    [
        (("outline", "elsewhere/nothing.py"), 1, "there is: app.py, boxes.py (a path counts from"),
        (("outline", "boxs.py"), 1, "there is: boxes.py"),
        (("symbols", "unheard_of"), 1, "a literal search finds other words"),
        (
            ("impact", "boxs.py"),
            1,
            "no file and no symbol 'boxs.py' in the source code here; there",
        ),
        (("impact", "QuixoticBoks"), 1, "there is: QuixoticBox"),
        (("context", "--budget", "3"), 2, "give 50 or more"),
        (("read", "boxes.py:900"), 2, "boxes.py has"),
        (("read", "boxes.py", "--snap", "class"), 2, "there is: function"),
    ],
)
def test_bad_input_is_named_with_what_would_work(
    shop: Vault, words: tuple[str, ...], code_of: int, said: str
) -> None:
    result = code(shop, *words)
    assert (result.exit_code, result.stdout) == (code_of, "")
    assert said in result.stderr


def test_a_language_without_a_grammar_is_named_with_those_that_have_one(shop: Vault) -> None:
    result = shop.run("search", "open($X)", "--structural", "--language", "klingon")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no patterns in 'klingon'; there is: bash, c, cpp" in result.stderr


def test_a_vault_without_code_says_how_to_bring_some(vault: Vault) -> None:
    result = code(vault, "context")
    assert result.exit_code == 1
    assert "no source code in here. To bring a Git work tree: memory-store import" in result.stderr


def test_the_lines_shown_begin_where_the_whole_name_stands(vault: Vault, tmp_path: Path) -> None:
    repo = tmp_path / "till"
    (repo / ".git").mkdir(parents=True)
    parts = "# a sign for the cookie\n# a cookie on the sign\n# sign, cookie\n"
    (repo / "till.py").write_text(f"class SignCookie:\n    limit = 1\n    total = 2\n{parts}")
    assert vault.run("import", str(repo), "--no-embed").exit_code == 0
    assert code(vault, "context").stdout.startswith("1 file · 6 lines of source code\n")
    shown = vault.run("search", "SignCookie", "--type", "code").stdout.split("\n")
    assert shown[1].split() == ["1", "class", "SignCookie:"]
