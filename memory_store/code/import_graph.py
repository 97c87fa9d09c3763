"""Which file imports which, out of what their statements name.

Boundary: reads paths and symbols of files; keeps nothing.

A name is resolved by the end of a path, and the file in the nearest folder is preferred. What
stands outside of the files, or cannot be told, is counted and not guessed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from memory_store.code.imports import FILE, FOLDER, NAMESPACE, Import
from memory_store.code.symbols import FileSymbols

_SUFFIXES = {
    "python": (".py", ".pyi", ".pyx"),
    "javascript": (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".d.ts", ".json", ".vue"),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java", ".kt", ".scala", ".groovy"),
    "c": (),
    "csharp": (".cs",),
    "ruby": (".rb",),
    "php": (".php",),
    "swift": (".swift",),
}
_FAMILY = {
    "typescript": "javascript", "tsx": "javascript", "vue": "javascript", "svelte": "javascript",
    "kotlin": "java", "scala": "java", "groovy": "java", "cpp": "c", "objc": "c", "cuda": "c",
}  # fmt: skip
_COMPILED = {
    "js": ("ts", "tsx", "d.ts"), "jsx": ("tsx",), "mjs": ("mts", "d.mts"), "cjs": ("cts", "d.cts"),
    "ts": ("d.ts",), "tsx": ("d.ts",), "mts": ("d.mts",), "cts": ("d.cts",),
}  # fmt: skip
_MAJOR_VERSION = re.compile(r"v\d+\Z")
_RUST_TARGETS = frozenset({"tests", "benches", "examples", "bin"})
_ROOTS = frozenset({"lib", "src", "app", "include", "python", "packages"})
_TESTS_OF_GO = "_test.go"


class SourceFile(Struct, frozen=True):
    """A file of a repository: its path, with ``/`` between folders, its language and symbols."""

    path: str
    language: str
    symbols: FileSymbols


class ImportGraph(Struct, frozen=True):
    """Edges between places in the list of files: ``imports[i]`` are the files that ``i`` imports,
    ``imported_by`` the way back; ``unresolved`` says of each file how many of its imports name
    nothing in here."""

    imports: tuple[tuple[int, ...], ...]
    imported_by: tuple[tuple[int, ...], ...]
    unresolved: tuple[int, ...]

    def hops(self, start: Iterable[int], most: int, *, both_ways: bool = False) -> dict[int, int]:
        """Who depends on some files, directly or by others: place → how many steps away.

        ``both_ways``: and what they depend on.
        """
        ways = (self.imported_by, self.imports) if both_ways else (self.imported_by,)
        found = dict.fromkeys(start, 0)
        edge = list(found)
        for hop in range(1, most + 1):
            reached = {other for one in edge for way in ways for other in way[one]}
            edge = sorted(reached - found.keys())
            found.update(dict.fromkeys(edge, hop))
        return found


def import_graph(files: Sequence[SourceFile]) -> ImportGraph:
    """The edges between some files."""
    known = _Known(files)
    imports, unresolved = [], []
    for place, file in enumerate(files):
        targets, missing = dict[int, None](), 0
        for one in file.symbols.imports:
            found = [there for there in known.resolve(place, one) if there != place]
            missing += not found
            targets.update(dict.fromkeys(found))
        imports.append(tuple(sorted(targets)))
        unresolved.append(missing)
    back: list[list[int]] = [[] for _ in files]
    for place, targeted in enumerate(imports):
        for target in targeted:
            back[target].append(place)
    return ImportGraph(tuple(imports), tuple(map(tuple, back)), tuple(unresolved))


class _Known:
    """The files by their paths and all ends of them, folders, packages and definitions."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.files = files
        self.places = {file.path: place for place, file in enumerate(files)}
        self.by_ending: dict[str, list[int]] = defaultdict(list)
        self.by_folder: dict[str, list[int]] = defaultdict(list)
        self.folders: dict[str, list[str]] = defaultdict(list)
        self.by_package: dict[str, list[int]] = defaultdict(list)
        for place, file in enumerate(files):
            folder, ending = _folder(file.path), file.path
            while ending:
                self.by_ending[ending].append(place)
                ending = ending.partition("/")[2]
            if folder not in self.by_folder:
                self.folders[folder.rpartition("/")[2]].append(folder)
            self.by_folder[folder].append(place)
            if file.symbols.package:
                self.by_package[file.symbols.package].append(place)
        self._defined: dict[int, frozenset[str]] = {}
        self._readers: Mapping[str, Callable[[int, str], list[int]]] = {
            "python": self._python,
            "go": self._go,
            "rust": self._rust,
            "java": self._packaged,
            "php": self._packaged,
            "csharp": self._packaged,
            "ruby": self._ruby,
        }

    def resolve(self, place: int, one: Import) -> list[int]:
        """The files that an import of the file at ``place`` names."""
        language = self.files[place].language
        family = _FAMILY.get(language, language)
        if one.how == NAMESPACE:
            in_it = self.by_package.get(one.name)
            if in_it is None:  # a class, which is used statically or under another name
                return self._packaged(place, one.name.replace(".", "/"))
            return self._used(place, in_it)
        if one.how == FOLDER and family == "java":
            in_package = self.by_package.get(one.name.replace("/", "."), [])
            return self._used(place, in_package) or self._packaged(place, one.name)
        if one.how == FOLDER and family == "swift":
            return self._used(place, self._in_folder(place, one.name, ".swift"))
        if one.how == FILE:
            return self._file(place, one.name, _SUFFIXES.get(family, ()))
        read = self._readers.get(family)
        return [] if read is None else read(place, one.name)

    # -- by paths -----------------------------------------------------------------------

    def _at(self, path: str) -> list[int]:
        place = self.places.get(path)
        return [] if place is None else [place]

    def _ending(self, place: int, ending: str) -> list[int]:
        """The file whose path ends so, in the nearest folder; none where two are as near."""
        return self._nearest(place, self.by_ending.get(ending, ()))

    def _nearest(self, place: int, found: Sequence[int]) -> list[int]:
        if len(found) < 2:
            return list(found)
        here = _folder(self.files[place].path).split("/")

        def distance(one: int) -> tuple[int, int]:
            there = _folder(self.files[one].path).split("/")
            common = _common(here, there)
            return -common, len(there)

        ordered = sorted(found, key=distance)
        return ordered[:1] if distance(ordered[0]) != distance(ordered[1]) else []

    def _file(self, place: int, name: str, suffixes: Sequence[str]) -> list[int]:
        """A file by a path as it is written: from the folder of the importing one, else by its
        end."""
        system = name.startswith("<")
        written = name.strip("<>")
        folder = _folder(self.files[place].path)
        relative = written.startswith(("./", "../")) or not suffixes
        if relative and not system and (path := _joined(folder, written)) is not None:
            found = self._variants(path, suffixes)
            if found:
                return found
        if written.startswith(("./", "../")):
            return []
        ending = written.lstrip("@~/")
        if "/" not in ending and (suffixes or system):
            return []  # a package of others: "react", <string.h>
        for one in _endings(ending, suffixes):
            if found := self._ending(place, one):
                return found
        return []

    def _variants(self, path: str, suffixes: Sequence[str]) -> list[int]:
        for one in _endings(path, suffixes):
            if found := self._at(one):
                return found
        return []

    # -- by languages -------------------------------------------------------------------

    def _python(self, place: int, name: str) -> list[int]:
        points = len(name) - len(name.lstrip("."))
        parts = [part for part in name[points:].split("/") if part]
        if points:
            above = _folder(self.files[place].path).split("/")
            kept = [part for part in above if part]
            if points - 1 > len(kept):
                return []
            base = kept[: len(kept) - (points - 1)]
            for count in (len(parts), len(parts) - 1):
                if count < 0:
                    continue
                path = "/".join([*base, *parts[:count]])
                if found := self._module(path):
                    return found
            return []
        for count in (len(parts), len(parts) - 1):
            if count > 0 and (found := self._absolute(place, "/".join(parts[:count]))):
                return found
        return []

    def _module(self, path: str) -> list[int]:
        init = f"{path}/__init__.py" if path else "__init__.py"
        return self._at(f"{path}.py") or self._at(init) or self._at(f"{path}.pyi")

    def _absolute(self, place: int, module: str) -> list[int]:
        """A module by its whole name: what stands above it is no package itself."""
        for ending in (f"{module}.py", f"{module}/__init__.py", f"{module}.pyi"):
            found = [p for p in self.by_ending.get(ending, ()) if not self._in_package(p, ending)]
            if chosen := self._nearest(place, found):
                return chosen
        return []

    def _in_package(self, place: int, ending: str) -> bool:
        """Whether what stands above the end of a file's path is a package of Python's."""
        root = self.files[place].path[: -len(ending)]
        return f"{root}__init__.py" in self.places

    def _go(self, place: int, name: str) -> list[int]:
        parts = name.split("/")
        outside = "." in parts[0]
        if len(parts) > 1 and _MAJOR_VERSION.match(parts[-1]):
            parts.pop()  # of the module, and no folder
        for skipped in range(len(parts)):
            if len(parts) - skipped < 2 and not outside:
                return []
            ending = "/".join(parts[skipped:])
            found = self._in_folder(place, ending, ".go")
            found = [one for one in found if not self.files[one].path.endswith(_TESTS_OF_GO)]
            if found:
                return self._used(place, found) or found
        root = [p for p in self.by_folder.get("", ()) if self.files[p].symbols.package == parts[-1]]
        return self._used(place, root) if outside else []

    def _in_folder(self, place: int, ending: str, suffix: str) -> list[int]:
        """The files of the nearest folder whose path ends so."""
        last = ending.rpartition("/")[2]
        folders = [f for f in self.folders.get(last, ()) if f"/{f}".endswith(f"/{ending}")]
        here = _folder(self.files[place].path).split("/")
        folders.sort(key=lambda one: (-_common(here, one.split("/")), len(one), one))
        for folder in folders:
            found = [p for p in self.by_folder[folder] if self.files[p].path.endswith(suffix)]
            if found:
                return found
        return []

    def _rust(self, place: int, name: str) -> list[int]:
        path = PurePosixPath(self.files[place].path)
        first, *rest = name.split("/")
        folder = "" if str(path.parent) == "." else str(path.parent)
        root = path.name in ("mod.rs", "lib.rs", "main.rs") or _is_target(path)
        own = folder if root else f"{folder}/{path.stem}"
        if first == "crate":
            base = _crate(str(path))
        elif first == "self":
            base = own.lstrip("/")
        elif first == "super":
            base = _folder(own.lstrip("/"))
            while rest[:1] == ["super"]:
                base, rest = _folder(base), rest[1:]
        else:
            return self._crate_of_others(place, first, rest)
        return self._rust_module(base, rest)

    def _rust_module(self, base: str, parts: Sequence[str]) -> list[int]:
        for count in range(len(parts), 0, -1):
            path = "/".join(filter(None, [base, *parts[:count]]))
            if found := self._at(f"{path}.rs") or self._at(f"{path}/mod.rs"):
                return found
        at_base = [f"{base}/{name}".lstrip("/") for name in ("lib.rs", "mod.rs", "main.rs")]
        for one in (*at_base, f"{base}.rs"):
            if found := self._at(one):
                return found
        return []

    def _crate_of_others(self, place: int, crate: str, parts: Sequence[str]) -> list[int]:
        for name in (crate, crate.replace("_", "-")):
            if found := self._ending(place, f"{name}/src/lib.rs") or self._own_crate(place, name):
                base = _folder(self.files[found[0]].path)
                return self._rust_module(base, parts) or found
        folder = _folder(self.files[place].path)  # since 2018: a module beside this one
        return self._rust_module(folder, [crate]) if self._at(f"{folder}/{crate}.rs") else []

    def _own_crate(self, place: int, name: str) -> list[int]:
        """The crate around a file where its folder is called so and has the version, too."""
        for folder in PurePosixPath(self.files[place].path).parents:
            if re.fullmatch(rf"{re.escape(name)}-\d[\w.+-]*", folder.name):
                return self._at(f"{folder}/src/lib.rs")
        return []

    def _packaged(self, place: int, name: str) -> list[int]:
        """A class by its package, else by its path; a member of a class by that of the class."""
        parts = name.split("/")
        for count in (len(parts), len(parts) - 1, len(parts) - 2):
            if count < 1:
                return []
            package, own = ".".join(parts[: count - 1]), parts[count - 1]
            found = [p for p in self.by_package.get(package, ()) if own in self.defined(p)]
            if found:
                return self._nearest(place, found) or found[:1]
        family = _FAMILY.get(self.files[place].language, self.files[place].language)
        for count in (len(parts), len(parts) - 1):
            if count >= 2:
                for ending in _endings("/".join(parts[:count]), _SUFFIXES[family])[1:]:
                    if found := self._ending(place, ending):
                        return found
        return []

    def _ruby(self, place: int, name: str) -> list[int]:
        ending = f"{name}.rb"
        found = [
            one
            for one in self.by_ending.get(ending, ())
            if _is_root(self.files[one].path[: -len(ending)])
        ]
        return self._nearest(place, found)

    # -- by names -----------------------------------------------------------------------

    def defined(self, place: int) -> frozenset[str]:
        """The names that a file defines."""
        if place not in self._defined:
            names = frozenset(one.name for one in self.files[place].symbols.definitions)
            self._defined[place] = names
        return self._defined[place]

    def _used(self, place: int, found: Sequence[int]) -> list[int]:
        """Of the files of a package those that define a name which the importing one uses."""
        names = self.files[place].symbols.references.keys()
        return [one for one in found if not self.defined(one).isdisjoint(names)]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _common(here: Sequence[str], there: Sequence[str]) -> int:
    count = 0
    for one, other in zip(here, there, strict=False):
        if one != other:
            break
        count += 1
    return count


def _joined(folder: str, written: str) -> str | None:
    """A path from a folder on, without ``.`` and ``..``; ``None`` where it leaves the root."""
    parts = [part for part in folder.split("/") if part]
    for part in written.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _endings(path: str, suffixes: Sequence[str]) -> list[str]:
    """The paths that a name may mean: itself, with a suffix, a folder's own file."""
    found = [path, *(path + suffix for suffix in suffixes)]
    if ".js" in suffixes:
        stem, point, written = path.rpartition(".")
        if point and written in _COMPILED:  # TypeScript names what its compiler writes, or reads
            found += [f"{stem}.{one}" for one in _COMPILED[written]]
        found += [f"{path}/index{suffix}" for suffix in suffixes]
    return found


def _crate(path: str) -> str:
    """The folder that a crate's names begin in: the nearest ``src`` above."""
    parts = path.split("/")[:-1]
    for roots in ({"src"}, _RUST_TARGETS):
        for count in range(len(parts), 0, -1):
            if parts[count - 1] in roots:
                return "/".join(parts[:count])
    return ""


def _is_target(path: PurePosixPath) -> bool:
    """Whether a file is a crate by itself: ``tests/a.rs``, ``src/bin/a.rs``."""
    folder = path.parent.name
    return folder == "bin" or (folder in _RUST_TARGETS and "src" not in path.parts)


def _is_root(above: str) -> bool:
    """Whether what stands above a required file is where a library begins."""
    last = above.rstrip("/").rpartition("/")[2]
    return not last or last in _ROOTS
