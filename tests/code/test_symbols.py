"""What source files define, use and import, in fourteen languages."""

from __future__ import annotations

import time

import pytest

from memory_store.code import grammars
from memory_store.code.definitions import defined_names
from memory_store.code.descriptions import descriptions
from memory_store.code.languages import language_of_file
from memory_store.code.symbols import BY_LINES, FileSymbols, layout, symbols_of

SOURCES = {
    "python": """
import json, os.path as place
from ..keys import (
    Key,  # the pair
    Lock as Bolt,
)
from . import hinges

LIMIT = 10

@cached
class Box(Base):
    async def open(self, key: Key = None) -> Lid:
        return self.turn(key) + oil(hinges.left)
""",
    "javascript": """
import Key, { Lock as Bolt } from './keys.js';
export * from '../hinges';
const tools = require('tools');
export class Box extends Base {
  open(key) { return this.turn(new Lid(key)); }
}
export const shut = (box) => tools.oil(box);
""",
    "typescript": """
import type { Key } from './keys';
export interface Lid extends Base { open(key: Key): Bolt }
export abstract class Box<T> { abstract open(key: Key): T; }
export type Pair = Key | Bolt;
enum Side { Left }
""",
    "go": """
package boxes
import (
	"fmt"
	keys "example.org/shop/keys"
)
type Box struct { lid Lid }
type Opener interface { Open(key keys.Key) error }
func (box *Box) Open(key keys.Key) error { return fmt.Errorf("%v", Turn(key)) }
const Limit = 10
""",
    "rust": """
use crate::keys::{Key, bolts::Lock as Bolt};
use super::hinges::*;
mod tools;
pub struct Box<T> { lid: T }
pub trait Opener { fn open(&self) -> Lid; }
impl<T> Opener for Box<T> { fn open(&self) -> Lid { tools::oil(self.turn()) } }
""",
    "java": """
package shop.boxes;
import shop.keys.Key;
import static shop.tools.Oil.drop;
import shop.hinges.*;
public class Box extends Base implements Opener {
  static final int LIMIT = 10;
  Box(Key key) { super(key); }
  public Lid open() { return turn(new Bolt()); }
  enum Side { LEFT }
}
""",
    "c": """
#include "keys.h"
#include <shop/tools.h>
#define LIMIT 10
struct box { struct lid *top; };
typedef struct box *Handle;
int turn(Handle one);
static Lid *open_box(struct box *one) { return oil(one->top, LIMIT); }
""",
    "cpp": """
#include "keys.hpp"
namespace shop {
class Box : public Base {
 public:
  Box();
  Lid open(const Key &key) { return turn(key); }
};
}
Lid shop::Box::shut(Key key) { return tools::oil(key); }
""",
    "csharp": """
using System.Text;
using Shop.Keys;
namespace Shop.Boxes {
  public class Box : Base {
    public Lid Top { get; set; }
    public Lid Open(Key key) { return Turn(new Bolt(key)); }
  }
  interface IOpener { Lid Open(Key key); }
}
""",
    "ruby": """
require 'json'
require_relative '../keys'
module Shop
  class Box < Base
    LIMIT = 10
    def self.made(lid) = new(lid)
    def open(key)
      Lid.turn(key)
    end
  end
end
""",
    "php": """<?php
namespace Shop\\Boxes;
use Shop\\Keys\\{Key, Lock as Bolt};
require_once __DIR__ . '/tools.php';
final class Box extends Base implements Opener {
    const LIMIT = 10;
    public function open(Key $key): Lid { return $this->turn(new Bolt($key)); }
}
function shut() { return oil(); }
""",
    "kotlin": """
package shop.boxes

import shop.keys.Key
import shop.hinges.*

class Box(val lid: Lid) : Base() {
    fun open(key: Key): Lid {
        return turn(Bolt(key))
    }
}

fun shut(box: Box) = oil(box)
""",
    "swift": """
import Foundation
import struct Keys.Key

class Box: Base {
    init(lid: Lid) {}
    func open(key: Key) -> Lid { return turn(Bolt(key)) }
}

extension Box {
    func shut() { oil(self) }
}
""",
    "scala": """
package shop.boxes

import shop.keys.{Key, Lock => Bolt}
import shop.hinges._

class Box(lid: Lid) extends Base {
  def open(key: Key): Lid = turn(new Bolt(key))
}

object Box {
  val limit = 10
}
""",
}

DEFINED = {
    "python": ["constant LIMIT", "class Box", "method Box.open"],
    "javascript": ["constant tools", "class Box", "method Box.open", "function shut"],
    "typescript": [
        *("interface Lid", "method Lid.open", "class Box", "method Box.open", "type Pair"),
        "enum Side",
    ],
    "go": [
        *("struct Box", "interface Opener", "method Opener.Open", "method Box.Open"),
        "constant Limit",
    ],
    "rust": ["struct Box", "interface Opener", "method Opener.open", "method Box.open"],
    "java": [
        "class Box",
        "constant Box.LIMIT",
        "method Box.Box",
        "method Box.open",
        "enum Box.Side",
    ],
    "c": ["macro LIMIT", "struct box", "type Handle", "declaration turn", "function open_box"],
    "cpp": [
        *("module shop", "class shop.Box", "declaration shop.Box.Box", "method shop.Box.open"),
        "method shop.Box.shut",
    ],
    "csharp": [
        *("class Box", "property Box.Top", "method Box.Open", "interface IOpener"),
        "method IOpener.Open",
    ],
    "ruby": [
        *("module Shop", "class Shop.Box", "constant Shop.Box.LIMIT", "method Shop.Box.made"),
        "method Shop.Box.open",
    ],
    "php": ["class Box", "constant Box.LIMIT", "method Box.open", "function shut"],
    "kotlin": ["class Box", "method Box.open", "function shut"],
    "swift": ["class Box", "method Box.init", "method Box.open", "method Box.shut"],
    "scala": ["class Box", "method Box.open", "class Box", "constant Box.limit"],
}

IMPORTED = {
    "python": ["json", "os/path", "..keys/Key", "..keys/Lock", ".hinges"],
    "javascript": ["./keys.js", "../hinges", "tools"],
    "typescript": ["./keys"],
    "go": ["fmt", "example.org/shop/keys"],
    "rust": ["crate/keys/Key", "crate/keys/bolts/Lock", "super/hinges", "self/tools"],
    "java": ["shop/keys/Key", "shop/tools/Oil/drop", "shop/hinges"],
    "c": ["keys.h", "<shop/tools.h>"],
    "cpp": ["keys.hpp"],
    "csharp": ["System.Text", "Shop.Keys"],
    "ruby": ["json", "./../keys"],
    "php": ["Shop/Keys/Key", "Shop/Keys/Lock", "./tools.php"],
    "kotlin": ["shop/keys/Key", "shop/hinges"],
    "swift": ["Foundation", "Keys"],
    "scala": ["shop/keys/Key", "shop/keys/Lock", "shop/hinges"],
}


@pytest.fixture(scope="module")
def symbols() -> dict[str, FileSymbols]:
    return {language: symbols_of(text, language) for language, text in SOURCES.items()}


@pytest.mark.parametrize("language", SOURCES)
def test_definitions_have_their_kind_and_what_they_stand_in(
    symbols: dict[str, FileSymbols], language: str
) -> None:
    found = symbols[language].definitions
    assert [f"{one.kind} {one.path}" for one in found] == DEFINED[language]


@pytest.mark.parametrize("language", SOURCES)
def test_a_definition_has_its_lines_and_its_signature(
    symbols: dict[str, FileSymbols], language: str
) -> None:
    lines = SOURCES[language].split("\n")
    for one in symbols[language].definitions:
        whole = "\n".join(lines[one.line - 1 : one.end_line])
        assert one.name in whole
        assert one.name.split()[0] in one.signature
        assert one.end_line <= symbols[language].lines


@pytest.mark.parametrize("language", SOURCES)
def test_imports_are_named_as_the_language_resolves_them(
    symbols: dict[str, FileSymbols], language: str
) -> None:
    assert [one.name for one in symbols[language].imports] == IMPORTED[language]
    statement = SOURCES[language].split("\n")[symbols[language].imports[0].line - 1]
    assert any(word in statement for word in ("import", "us", "require", "include", "from", '"'))


@pytest.mark.parametrize("language", SOURCES)
def test_uses_are_known_by_their_lines_and_are_no_definitions(
    symbols: dict[str, FileSymbols], language: str
) -> None:
    found, lines = symbols[language].references, SOURCES[language].split("\n")
    called = {"c": "oil", "php": "oil", "ruby": "Lid", "csharp": "Turn", "go": "Turn"}
    wanted = called.get(language, "Key" if language == "typescript" else "turn")
    wanted = {"javascript": "oil", "rust": "oil", "scala": "turn"}.get(language, wanted)
    assert wanted in found
    for name, on in found.items():
        assert all(name in lines[line - 1] for line in on)
    assert "self" not in found


def test_a_name_that_is_used_twice_in_a_line_has_that_line_once() -> None:
    assert symbols_of("turn(1) + turn(2)\nturn(3)\n", "python").references["turn"] == (1, 2)


def test_names_of_other_alphabets_keep_their_lines() -> None:
    found = symbols_of("# größer\ndef ändern():\n    return prüfen('ß')\n", "python")
    assert [(one.name, one.line) for one in found.definitions] == [("ändern", 2)]
    assert found.references == {"prüfen": (3,)}


@pytest.mark.parametrize(
    ("language", "text", "defined"),
    [
        (
            "javascript",
            "function box( {\n  a ==> b;;\nfunction shut(a) {\n  return (;\n}\n",
            ["definition box", "definition shut"],
        ),
        (
            "cpp",
            "SHOP_BEGIN(shop)\nSHOP_BEGIN(boxes)\n\nclass SHOP_API Box {\n  void open() {}\n};\n"
            "SHOP_END(boxes)\n",
            ["class Box", "method Box.open"],
        ),
        ("c", "SHOP_API struct box *made(void) {\n}\n", ["function made"]),
        (
            "c",
            "typedef int (*turn)(int a);\nint keys[2] = {1, 2};\n",
            ["type turn", "constant keys"],
        ),
        (
            "javascript",
            "on('open', function opened() {});\nvar lid = {};\n",
            ["function opened", "constant lid"],
        ),
        ("typescript", "export declare const lid: Lid;\n", ["constant lid"]),
        (
            "ruby",
            "class Box\n  attr_reader :lid, :key\nend\n",
            ["class Box", "property Box.lid", "property Box.key"],
        ),
        ("go", "package a\nvar _ Lid = Box{}\nvar b = 1\n", ["constant b"]),
    ],
    ids=[
        "unread",
        "macros",
        "in front",
        "pointers",
        "callbacks",
        "declared",
        "attributes",
        "blank",
    ],
)
def test_what_published_code_is_written_like_is_known(
    language: str, text: str, defined: list[str]
) -> None:
    found = symbols_of(text, language).definitions
    assert [f"{one.kind} {one.path}" for one in found] == defined


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("box.h", "int turn(int a);\n", "c"),
        ("box.h", "/* no class here */\n#include <stdint.h>\n", "c"),
        ("box.h", "#pragma once\n#include <vector>\n", "cpp"),
        ("box.h", "namespace shop {\n}\n", "cpp"),
        ("BOX.H", "#import <Lid/Lid.h>\n", "objc"),
        ("box.c", "namespace\n", "c"),
        ("box", "#!/usr/bin/env python3\n", "python"),
        ("box", "", None),
    ],
)
def test_a_header_is_of_the_language_that_is_in_it(
    name: str, text: str, language: str | None
) -> None:
    assert language_of_file(name, text) == language


@pytest.mark.parametrize(
    "text", ["", "def (", "class A:\n" * 60, "\ud800 = 1", "x = [" * 5_000, "\0"]
)
def test_a_broken_file_has_what_can_be_read_of_it(text: str) -> None:
    assert symbols_of(text, "python").lines == text.count("\n") + (bool(text) and text[-1] != "\n")


def test_a_line_of_stars_takes_no_longer_than_another() -> None:
    banner = f"/{'*' * 200}\n"
    assert defined_names(f"{banner}int turn(int a) {{\n}}\n{'& ' * 2_000}\n") == ["turn"]


def test_a_language_without_queries_has_definitions_alone() -> None:
    found = symbols_of("local function open_box(key)\n  return turn(key)\nend\n", "lua")
    assert ([one.name for one in found.definitions], found.imports) == (["open_box"], ())


def test_without_grammars_definitions_are_known_by_their_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grammars, "installed", lambda: False)
    found = symbols_of("import os\ndef open_box(): pass\n", "python")
    assert (found.made_by, [one.name for one in found.definitions]) == (BY_LINES, ["open_box"])
    assert found.imports == ()


@pytest.mark.parametrize("language", [*SOURCES, "text"])
@pytest.mark.parametrize("times", [1, 40])
def test_what_is_kept_of_a_file_says_where_its_chunks_and_definitions_are_without_parsing(
    language: str, times: int
) -> None:
    text = "/* größer */\n" + SOURCES.get(language, "def a(): pass\n\n" * 6) * times
    kept = symbols_of(text, language)
    assert len(layout(text, language, kept)[0]) >= times // 20
    assert layout(text, language, kept) == layout(text, language, None)


def test_what_is_kept_of_another_text_is_not_believed() -> None:
    kept = symbols_of("def a(): pass\n", "python")
    text = "def longer(): pass\n"
    assert layout(text, "python", kept) == layout(text, "python", None)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def first():\n    pass\n\n" + "a." * 150_000 + "a\n"),
        ("python", "(" * 300_000),
        ("typescript", "[{" * 100_000),
        ("java", "import a" + " " * 300_000 + "as b;"),
        ("javascript", "function a(){} /* b */ " * 20_000),
        ("python", "# of it\n" * 40_000 + "def f(): pass\n" * 10_000),
    ],
    ids=["deep", "open", "open in pairs", "blank", "a line", "comments"],
)
def test_hostile_source_code_takes_no_more_time_than_any_other(language: str, text: str) -> None:
    began = time.process_time()
    descriptions(text, symbols_of(text, language).definitions)
    assert time.process_time() - began < 10
