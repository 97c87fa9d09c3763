"""Chunks, symbols and imports of source code as others have published it, in every language.

The packages are fetched (:mod:`published_packages`): a few megabytes, once. What is asserted of
each stands in its files: definitions with their kind and lines, and which file imports which.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from published_packages import APT, NPM, PIP, Package, fetched

from memory_store.code import grammars
from memory_store.code.chunks import CHUNK_CHARACTERS, code_chunks
from memory_store.code.symbols import layout, symbols_of
from memory_store.records.code import CodeSymbol
from memory_store.store import MemoryStore

pytestmark = pytest.mark.skipif(not grammars.installed(), reason="the extra code is not installed")

PACKAGES = {
    "click": Package(
        *(PIP, "click", "8.5.1"),
        "8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37",
    ),
    "flask": Package(
        *(PIP, "flask", "3.1.3"),
        "f4bcbefc124291925f1a26446da31a5178f9483862233b23c0c96a20701f670c",
    ),
    "express": Package(
        *(NPM, "express", "5.3.0"),
        "62450d99e36dc393295f1ddd93cb9291e658c169f3b700b0110c1ae8fa799930",
    ),
    "hashes": Package(
        *(NPM, "@noble/hashes", "1.8.0"),
        "e8a765d92c04faaccba8776411c5038cb195f812ee629fce07e1d2e6aec80ea0",
    ),
    "chi": Package(
        *(APT, "golang-github-go-chi-chi-dev", "5.0.7-1"),
        "70beea5ca4f20af122e8083c91b56b6055df895595c7d9dcf286fadd4ad26f9b",
    ),
    "semver": Package(
        *(APT, "librust-semver-dev:amd64", "1.0.14-1"),
        "bf3719b7aac4b7f16f0d68a7037306dbc1532758fe7a5dea01254e85cecaca8c",
    ),
    "android": Package(
        *(NPM, "@capacitor/android", "8.5.2"),
        "ebb2113aa97526ce66b11653b26f7f763d976788ee69b1725aa88c0bc5347efe",
    ),
    "camera": Package(
        *(NPM, "@capacitor/camera", "8.2.4"),
        "b097548dfc30ca8d4c7da928533da0aa110d68b7e9470d0803c2e879c602082e",
    ),
    "ios": Package(
        *(NPM, "@capacitor/ios", "8.5.2"),
        "e81986966d6ab96083351ca686b179f1d952b1d037368e9c21b531ea0c935e51",
    ),
    "unitask": Package(
        *(NPM, "com.cysharp.unitask", "2.2.5"),
        "dd89936982fc32a962ac09db926ee0bcc7ca2ab9a02c1553393031345aaf7d2f",
    ),
    "secp256k1": Package(
        *(NPM, "secp256k1", "5.0.2"),
        "06b47f284331838bffc67512d38b35230fc22d1b84798ecf5e00a2a4d18e88a0",
    ),
    "pybind11": Package(
        *(PIP, "pybind11", "3.1.0"),
        "b8488090f8acffbcb6b5d6a85571a6827a0a2981ffb75e5a0b27b87c4a6b7dd0",
    ),
    "mustermann": Package(
        *(APT, "ruby-mustermann", "3.0.0-2"),
        "951ce99726f797e9d28e4f64175733e007930109d295e8070e46ecf6f862c892",
    ),
    "rialto": Package(
        *(NPM, "@nesk/rialto", "1.4.0"),
        "a168437a113ef4b564b1286988166261f8f14f64995a508c8cd49b0b4be190b6",
    ),
    "generator": Package(
        *(NPM, "generator-jvm", "1.18.99"),
        "fbcce0fb7af727b9d943e6da1c1fc2490deceb1a28765fdab3737107ee6f454b",
    ),
}
DEMO = Path(__file__).parents[2] / "demo" / "notes"
# (package, end of a path) → its language, definitions that stand there, and files that it imports
FACTS: dict[tuple[str, str], tuple[str, list[str], list[str]]] = {
    ("click", "click/core.py"): (
        "python",
        ["function batch 124-125", "class Context 213-957", "method Context.invoke 861-911"],
        ["click/exceptions.py", "click/formatting.py", "click/globals.py", "click/types.py"],
    ),
    ("express", "lib/express.js"): (
        "javascript",
        ["function createApplication 36-56"],
        ["lib/application.js", "lib/request.js", "lib/response.js"],
    ),
    ("express", "lib/request.js"): ("javascript", ["function protocol 297-315"], []),
    ("hashes", "src/hmac.ts"): (
        "typescript",
        ["class HMAC 7-77", "method HMAC.update 37-41", "function hmac 89-93"],
        ["src/utils.ts"],
    ),
    ("hashes", "hmac.d.ts"): ("typescript", ["class HMAC 6-20"], ["utils.d.ts"]),
    ("chi", "chi/mux.go"): (
        "go",
        ["struct Mux 21-46", "function NewMux 50-56", "method Mux.ServeHTTP 61-90"],
        [],
    ),
    ("chi", "_examples/rest/main.go"): (
        "go",
        ["function ArticleCtx 128-149", "struct ErrResponse 405-412"],
        ["chi/mux.go", "middleware/logger.go"],
    ),
    ("semver", "src/lib.rs"): (
        "rust",
        ["struct Version 162-168", "method Version.new 398-406", "enum Op 253-266"],
        ["src/error.rs", "src/parse.rs"],
    ),
    ("semver", "tests/test_version.rs"): (
        "rust",
        ["function test_parse 13-145"],
        ["src/lib.rs", "tests/util/mod.rs"],
    ),
    ("android", "getcapacitor/PluginHandle.java"): (
        "java",
        ["class PluginHandle 14-160", "method PluginHandle.getId 77-79"],
        ["annotation/CapacitorPlugin.java"],
    ),
    ("camera", "camera/PermissionHelper.kt"): (
        "kotlin",
        ["class PermissionHelper 9-39", "method PermissionHelper.getPermissionState 20-22"],
        [],
    ),
    ("camera", "camera/IonCameraFlow.kt"): (
        "kotlin",
        ["class IonCameraFlow 46-1063"],
        ["camera/IonCameraSettings.kt"],
    ),
    # its grammar cannot read the annotation of this class: it is read by lines
    ("camera", "camera/CameraPlugin.kt"): ("kotlin", ["definition CameraPlugin 46-46"], []),
    ("ios", "Capacitor/CAPBridge.swift"): (
        "swift",
        ["class CAPBridge 5-25", "method CAPBridge.handleOpenUrl 14-16"],
        [],
    ),
    ("ios", "Capacitor/Array+Capacitor.swift"): (
        "swift",
        ["method CapacitorExtensionTypeWrapper.replacingNullValues 4-11"],
        [],
    ),
    ("unitask", "Runtime/AsyncLazy.cs"): (
        "csharp",
        ["class AsyncLazy 8-125", "property AsyncLazy.Task 46-53"],
        [],
    ),
    ("unitask", "Editor/UniTaskTrackerTreeView.cs"): (
        "csharp",
        ["class UniTaskTrackerTreeView 58-179"],
        ["Internal/WeakDictionary.cs"],
    ),
    ("secp256k1", "src/ecdsa_impl.h"): (
        "c",
        ["macro SECP256K1_ECDSA_IMPL_H 9-9", "function secp256k1_der_read_len 49-100"],
        ["src/ecmult.h", "src/field.h", "src/scalar.h"],
    ),
    ("secp256k1", "include/secp256k1.h"): (
        "c",
        ["type secp256k1_nonce_function 100-107"],
        [],
    ),
    ("secp256k1", "src/bench_ecdh.c"): (
        "c",
        ["function bench_ecdh 39-47"],
        ["include/secp256k1.h"],
    ),
    ("pybind11", "pybind11/buffer_info.h"): (
        "cpp",
        ["function c_strides 19-28", "struct buffer_info 46-184"],
        ["detail/common.h"],
    ),
    ("mustermann", "ast/node.rb"): (
        "ruby",
        ["class Mustermann.AST.Node 5-220", "property Mustermann.AST.Node.payload 7-7"],
        [],
    ),
    ("mustermann", "ast/compiler.rb"): (
        "ruby",
        ["class Mustermann.AST.Compiler 9-155"],
        ["ast/translator.rb"],
    ),
    ("rialto", "Data/BasicResource.php"): (
        "php",
        ["class BasicResource 8-19", "method BasicResource.jsonSerialize 15-18"],
        ["Traits/IdentifiesResource.php", "Interfaces/ShouldIdentifyResource.php"],
    ),
    ("generator", "scala-2.11/src/test/scala/daggerok/scalatest.scala"): (
        "scala",
        ["class StackSuite 19-35", "class ExampleSpec 79-98"],
        [],
    ),
    ("generator", "scala-gradle-akka-actor/src/main/scala/daggerok/App.scala"): (
        "scala",
        ["class MyActor 7-11", "method MyActor.receive 8-10", "class App 13-21"],
        [],
    ),
}


@pytest.fixture(scope="module")
def folder(build_once: Callable[..., Path]) -> Path:
    """The packages, each unpacked as a work tree of its own."""

    def unpacked(target: Path) -> Path:
        made = target.with_name(f"{target.name}.new")
        for name, package in PACKAGES.items():
            fetched(package, made / name)
            (made / name / ".git").mkdir()
        return made.rename(target)

    return build_once("published packages", unpacked)


@pytest.fixture(scope="module")
def store(folder: Path, module_store: MemoryStore) -> MemoryStore:
    """A vault with all of them, each in a collection of its own."""
    for name in PACKAGES:
        module_store.import_paths([folder / name], collection=name, embed=False)
    return module_store


@pytest.fixture(scope="module")
def symbols(store: MemoryStore) -> dict[str, dict[str, list[CodeSymbol]]]:
    """What each file of each package defines."""
    found: dict[str, dict[str, list[CodeSymbol]]] = {name: defaultdict(list) for name in PACKAGES}
    for one in store.code.every_symbol():
        found[one.collection][one.file].append(one)
    return found


@pytest.mark.parametrize(("package", "ending"), FACTS, ids=lambda one: one.rpartition("/")[2])
def test_what_stands_in_a_published_file_is_known_of_it(
    store: MemoryStore, symbols: dict[str, dict[str, list[CodeSymbol]]], package: str, ending: str
) -> None:
    language, defined, imported = FACTS[package, ending]
    paths = [one for one in symbols[package] if f"/{one}".endswith(f"/{ending}")]
    path = min(paths, key=len)
    known = [
        f"{one.kind} {'.'.join(filter(None, [one.container, one.name]))} {one.line}-{one.end_line}"
        for one in symbols[package][path]
    ]
    assert [one for one in defined if one not in known] == [], known
    found = store.code.outline(path, collection=package)
    assert (found.language, len(found.symbols)) == (language, len(known))
    missing = [o for o in imported if not any(one.endswith(o) for one in found.imports)]
    assert missing == [], found.imports


def test_facts_cover_every_language_and_edges_of_ten() -> None:
    languages = {language for language, _, _ in FACTS.values()}
    assert len(languages) == 14
    assert len({language for language, _, imported in FACTS.values() if imported}) >= 10


def test_who_depends_on_a_published_file_is_known(store: MemoryStore) -> None:
    found = store.code.impact("src/hmac.ts", collection="hashes")
    hops = {one.file.removeprefix("package/"): one.hops for one in found.files}
    assert (hops["src/hkdf.ts"], hops["src/pbkdf2.ts"], hops["src/scrypt.ts"]) == (1, 1, 2)


def test_a_question_over_repositories_and_notes_is_answered_by_the_defining_function(
    store: MemoryStore,
) -> None:
    store.import_paths([DEMO], collection="notes", embed=False)
    first = store.search("where are session cookies signed", limit=1).rows[0]
    assert (first.collection, first.ref) == ("flask", "flask/sessions.py")
    assert (first.line, first.end_line) == (284, 321)
    assert first.symbol == "SecureCookieSessionInterface.get_signing_serializer"
    assert "get_signing_serializer" in {one.name for one in store.code.outline(first.id).symbols}
    near = {one.file for one in store.code.impact(first.id).files if one.hops == 1}
    assert {"flask/app.py", "flask/ctx.py"} <= near


@pytest.mark.parametrize("package", PACKAGES)
def test_every_character_of_a_published_file_is_in_one_chunk_and_functions_are_whole(
    symbols: dict[str, dict[str, list[CodeSymbol]]], folder: Path, package: str
) -> None:
    functions = cut = 0
    assert symbols[package]
    for path, (first, *_) in symbols[package].items():
        language = first.language
        text = (folder / package / path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        chunks = code_chunks(text, language)
        assert "".join(text[start:end] for start, end in chunks) == text
        assert all(end - start <= CHUNK_CHARACTERS for start, end in chunks)
        known = symbols_of(text, language)
        assert layout(text, language, known) == layout(text, language, None)
        for one in layout(text, language, known)[1]:
            if one.kind in ("function", "method") and one.end - one.start <= CHUNK_CHARACTERS:
                functions += 1
                cut += not any(start <= one.start and one.end <= end for start, end in chunks)
    assert cut <= functions // 100, (cut, functions)


def test_headers_are_of_the_language_that_is_in_them(
    symbols: dict[str, dict[str, list[CodeSymbol]]],
) -> None:
    for package, language in (("pybind11", "cpp"), ("secp256k1", "c"), ("ios", "objc")):
        headers = [of[0].language for path, of in symbols[package].items() if path.endswith(".h")]
        assert Counter(headers)[language] > len(headers) / 2, headers
