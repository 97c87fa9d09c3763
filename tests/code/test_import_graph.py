"""Which file imports which."""

from __future__ import annotations

import pytest

from memory_store.code.import_graph import SourceFile, import_graph
from memory_store.code.languages import language_of_name
from memory_store.code.symbols import symbols_of

Tree = dict[str, str]

TREES: dict[str, tuple[Tree, dict[str, list[str]]]] = {
    "python": (
        {
            "src/shop/__init__.py": "from .boxes import Box\n",
            "src/shop/boxes.py": "import json\nfrom shop import keys\nfrom . import hinges\n",
            "src/shop/keys.py": "from shop.hinges import Hinge\n",
            "src/shop/hinges/__init__.py": "from ..keys import *\n",
            "src/shop/json.py": "",
            "tests/test_boxes.py": "import shop.boxes\nimport os\n",
        },
        {
            "src/shop/__init__.py": ["src/shop/boxes.py"],
            "src/shop/boxes.py": ["src/shop/hinges/__init__.py", "src/shop/keys.py"],
            "src/shop/keys.py": ["src/shop/hinges/__init__.py"],
            "src/shop/hinges/__init__.py": ["src/shop/keys.py"],
            "tests/test_boxes.py": ["src/shop/boxes.py"],
        },
    ),
    "javascript": (
        {
            "web/box.js": "import Key from './keys';\nconst a = require('react');\n",
            "web/keys/index.ts": "import { oil } from '../oil.js';\n",
            "web/oil.ts": "import x from '@/web/box';\nimport { y } from './lid.ts';\n",
            "web/lid.d.ts": "",
        },
        {
            "web/box.js": ["web/keys/index.ts"],
            "web/keys/index.ts": ["web/oil.ts"],
            "web/oil.ts": ["web/box.js", "web/lid.d.ts"],
        },
    ),
    "go": (
        {
            "cmd/main.go": 'package main\nimport "example.org/shop/boxes"\n'
            "func main() { boxes.Open() }\n",
            "boxes/open.go": 'package boxes\nimport "fmt"\nfunc Open() { fmt.Println() }\n',
            "boxes/shut.go": "package boxes\nfunc Shut() {}\n",
            "boxes/open_test.go": "package boxes\nfunc Open() {}\n",
            "cmd/two.go": 'package main\nimport "example.org/boxes/v2"\nvar a = boxes.Shut\n',
        },
        {"cmd/main.go": ["boxes/open.go"], "cmd/two.go": ["boxes/shut.go"]},
    ),
    "rust": (
        {
            "src/lib.rs": "mod boxes;\nmod keys;\n",
            "src/boxes/mod.rs": "use crate::keys::Key;\nmod lid;\n",
            "src/boxes/lid.rs": "use super::Box;\nuse std::fmt;\n",
            "src/keys.rs": "",
            "tests/opens.rs": "mod tools;\nuse crate::tools::oil;\n",
            "tests/tools/mod.rs": "",
            "vendor/lid-1.2.0/src/lib.rs": "",
            "vendor/lid-1.2.0/benches/lid.rs": "use lid::{self, Lid};\n",
        },
        {
            "src/lib.rs": ["src/boxes/mod.rs", "src/keys.rs"],
            "src/boxes/mod.rs": ["src/boxes/lid.rs", "src/keys.rs"],
            "src/boxes/lid.rs": ["src/boxes/mod.rs"],
            "tests/opens.rs": ["tests/tools/mod.rs"],
            "vendor/lid-1.2.0/benches/lid.rs": ["vendor/lid-1.2.0/src/lib.rs"],
        },
    ),
    "java": (
        {
            "a/shop/Box.java": "package shop;\nimport shop.keys.Key;\nimport java.util.*;\n",
            "a/shop/keys/Key.java": "package shop.keys;\nimport shop.*;\nclass Key { Lid a; }\n",
            "a/shop/Lid.java": "package shop;\nclass Lid {}\n",
        },
        {"a/shop/Box.java": ["a/shop/keys/Key.java"], "a/shop/keys/Key.java": ["a/shop/Lid.java"]},
    ),
    "kotlin": (
        {
            "box.kt": "package shop\n\nimport shop.keys.oil\n\nclass Box\n",
            "all.kt": "package shop.keys\n\nfun oil() {}\n",
        },
        {"box.kt": ["all.kt"]},
    ),
    "scala": (
        {
            "Box.scala": "package shop\n\nimport shop.keys.{Key, Bolt}\n\nclass Box\n",
            "Keys.scala": "package shop.keys\n\nclass Key\n\nclass Bolt\n",
        },
        {"Box.scala": ["Keys.scala"]},
    ),
    "c": (
        {
            "src/box.c": '#include "box.h"\n#include <string.h>\n#include <shop/keys.h>\n',
            "src/box.h": "",
            "old/box.h": "",
            "include/shop/keys.h": '#include "lid.hpp"\n',
            "include/shop/lid.hpp": "",
            "lib/string.h": "",
        },
        {
            "src/box.c": ["include/shop/keys.h", "src/box.h"],
            "include/shop/keys.h": ["include/shop/lid.hpp"],
        },
    ),
    "csharp": (
        {
            "Box.cs": "using System;\nusing Shop.Keys;\n\nclass Box { Key key; }\n",
            "Key.cs": "namespace Shop.Keys { class Key {} }\n",
            "Bolt.cs": "namespace Shop.Keys { class Bolt {} }\n",
            "Lid.cs": "using B = Shop.Keys.Bolt;\n",
        },
        {"Box.cs": ["Key.cs"], "Lid.cs": ["Bolt.cs"]},
    ),
    "ruby": (
        {
            "lib/shop.rb": "require 'shop/box'\nrequire 'json'\n",
            "lib/shop/box.rb": "require_relative 'keys'\n",
            "lib/shop/keys.rb": "",
            "lib/shop/json.rb": "",
        },
        {"lib/shop.rb": ["lib/shop/box.rb"], "lib/shop/box.rb": ["lib/shop/keys.rb"]},
    ),
    "php": (
        {
            "src/Box.php": "<?php\nuse Shop\\Keys\\Key;\nrequire __DIR__ . '/a.php';\n",
            "src/Keys/Key.php": "<?php\nnamespace Shop\\Keys;\nclass Key {}\n",
            "src/a.php": "<?php\n",
        },
        {"src/Box.php": ["src/Keys/Key.php", "src/a.php"]},
    ),
    "swift": (
        {
            "Sources/App/main.swift": "import Keys\nimport Foundation\n\nlet one = Key()\n",
            "Sources/Keys/Key.swift": "class Key {}\n",
            "Sources/Keys/Bolt.swift": "class Bolt {}\n",
        },
        {"Sources/App/main.swift": ["Sources/Keys/Key.swift"]},
    ),
}


def files_of(tree: Tree) -> list[SourceFile]:
    found = []
    for path, text in tree.items():
        language = language_of_name(path) or ""
        found.append(SourceFile(path, language, symbols_of(text, language)))
    return found


def edges_of(tree: Tree) -> dict[str, list[str]]:
    graph, paths = import_graph(files_of(tree)), list(tree)
    return {
        paths[place]: sorted(paths[one] for one in there)
        for place, there in enumerate(graph.imports)
        if there
    }


@pytest.mark.parametrize("language", TREES)
def test_imports_lead_to_files(language: str) -> None:
    tree, expected = TREES[language]
    assert edges_of(tree) == expected


def test_what_is_outside_is_counted() -> None:
    tree = TREES["python"][0]
    graph = import_graph(files_of(tree))
    assert dict(zip(tree, graph.unresolved, strict=True))["src/shop/boxes.py"] == 1
    assert sum(graph.unresolved) == 2


def test_the_nearest_folder_is_preferred_and_a_tie_is_not_guessed() -> None:
    tree = {
        "one/web/box.py": "import keys.lid\n",
        "one/web/keys/lid.py": "",
        "two/keys/lid.py": "",
        "three/deep/box.py": "import keys.lid\n",
        "four/keys/lid.py": "",
    }
    assert edges_of(tree) == {"one/web/box.py": ["one/web/keys/lid.py"]}


def test_who_depends_on_a_file_is_known_by_steps() -> None:
    tree = {"a.py": "", "b.py": "import a\n", "c.py": "import b\n", "d.py": "import c, a\n"}
    graph = import_graph(files_of(tree))
    assert graph.hops([0], 5) == {0: 0, 1: 1, 3: 1, 2: 2}
    assert graph.hops([0], 1) == {0: 0, 1: 1, 3: 1}
