"""Where cryptography happens: in one folder, and opening a value in one function of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import memory_store

ROOT = Path(memory_store.__file__).parents[1]
PACKAGES = ("memory_store", "datasette_hybrid")
OPENING = {"decrypt", "decrypt_into", "decryptor"}
DOORS = {
    ("memory_store/crypto/sealing.py", "unseal", "decrypt_into"),  # every value of the file
    ("memory_store/crypto/identities.py", "opened", "decrypt"),  # a grant, by HPKE
    ("memory_store/crypto/blinding.py", "bare", "decryptor"),  # a keyed hash: no value at all
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text("utf-8"))


def test_values_are_opened_by_one_function() -> None:
    found = {
        (name, function.name, call.func.attr)
        for name, module in modules()
        for function in ast.walk(module)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in OPENING
    }
    assert found == DOORS


def test_no_other_folder_imports_a_cipher() -> None:
    importing = {
        name
        for name, module in modules()
        for node in ast.walk(module)
        for imported in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if imported.partition(".")[0] in ("cryptography", "nacl", "Crypto")
    }
    assert importing
    assert {name for name in importing if not name.startswith("memory_store/crypto/")} == set()
