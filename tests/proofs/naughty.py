"""Strings that break programs: a fixed collection, and endless combinations of its kinds.

The same number always gives the same strings. Half pairs of surrogates stand for bytes that are no
UTF-8 (:func:`as_bytes` gives those bytes), since command lines and names of files carry them so.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

FTS5 = (
    *("AND", "OR", "NOT", "NEAR(a b, 2)", "NEAR/3", '"', '""', '"unclosed', "a AND", "NOT b"),
    *("title : a", "{title body} : a", "- {title} : a", "^start", "pre*", "*", "a + b", "a NEAR b"),
    *("(", ")", "((a)", "a)b", "col:", ":", "a:b:c", '"a" * "b"', "+", "^", "a^b", "AND OR NOT"),
    *("rank MATCH 'bm25()'", "highlight(t, 0, '<', '>')", "fts5('optimize')", "'", "''", "a'b"),
)
SQL = (
    *(
        "' or '1'='1",
        "'; drop table memories; --",
        "1; select 1",
        "') union select 1--",
        "/*",
        "*/",
    ),
    *("%", "_", "like '%'", "x'00'", ":q", "?1", "@q", "$q", "]", "[", "`", "a\\' b", "\\x27"),
    *("load_extension('x')", "pragma writable_schema=1", "attach ':memory:' as x", "char(0)"),
    *("memory_text(id)", "select * from hybrid_search('a')", "writefile('/tmp/x', 'y')", "--"),
)
CONTROLS = (
    *("\x00", "a\x00b", "\x00\x00", "\x01\x02\x03", "\x7f", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07"),
    *("\r", "\n", "\r\n\r\nHTTP/1.1 200", "\t", "\v\f", "\x85", "\u2028", "\u2029", "\ufeff", "\b"),
)
HALVES = (
    *("\ud800", "\udfff", "a\ud83d", "\udc80\udcff", "\udcc0\udcaf", "\udced\udca0\udc80"),
    *("\ud800\ud800", "\udc00\ud800", "word \udcfe", "\udcf8\udc88\udc80\udc80\udc80"),
)
UNICODE = (
    *("\u202eevil\u202c", "\u2066a\u2069", "\u200bzero\u200b", "\u00ad", "\u061c", "\ufffe\uffff"),
    *("e\u0301" * 3, "Z" + "\u0363\u0364\u0365" * 40, "\u0300" * 500, "ᄀ" * 50, "ﷺ" * 20, "ſﬁ"),
    *("👨‍👩‍👧‍👦", "🏳️‍🌈" * 10, "👍🏽", "🇩🇪🇩", "\u200d" * 30, "❤️", "\U0010ffff", "\ue000", "𝕬𝖇𝖈"),
    *("pаypаl", "ΑΒΕ", "Ꭺdmin", "ｆｕｌｌ", "İstanbul", "ıi", "ß", "ẞ", "ς", "Ǆ", "ŉ", "ΐ"),
    *("田中さん", "한국어", "ภาษาไทย", "हिन्दी", "עברית", "العربية", "ქართული", "ᚠᛇᚻ", "𒀀"),
)
FORMATS = (
    *("%s%s%s%n", "%x" * 20, "%99999999d", "{}", "{0}", "{0.__class__}", "{q!r}", "{{7*7}}"),
    *("${7*7}", "#{7*7}", "<%= 7*7 %>", "{% raw %}", "{{ config }}", "${jndi:ldap://x/a}", "$(id)"),
    *("`id`", "; id", "| cat /etc/passwd", "&& id", "$HOME", "~", "~root", "~nobody0/x", "%00"),
    *("%2e%2e%2f", "%c0%af", "%ff", "%", "%zz", "+", "&a=b", "=", "&amp;", "#", "?", "a=b&a=c"),
)
PATHS = (
    *(
        "../../etc/passwd",
        "..\\..\\windows",
        "/etc/passwd",
        "/dev/zero",
        "C:\\con",
        "con",
        "nul.md",
    ),
    *("file:///etc/passwd", "\\\\host\\share", ".", "..", "...", "/", "//", "a/../b", "a//b"),
    *(
        ".git/config",
        "-",
        "--",
        "-rf",
        "--help",
        "--key-file",
        "-h",
        "@file",
        "notes.db?",
        "?",
        "*",
    ),
    *("x.db?words", "~nobody0.db?words", "a" * 300 + ".db?words", "a\x00.db?words", "|id", "a;b"),
)
HTML = (
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</textarea><b>", "<!--", "-->"),
    *(
        "javascript:alert(1)",
        '" onmouseover="alert(1)',
        "<svg/onload=alert(1)>",
        "]]>",
        "<![CDATA[",
    ),
    *("&lt;script&gt;", "<style>*{}</style>", "<base href=//x>", "<a href='data:,x'>", "<?xml?>"),
    *("[x](javascript:alert(1))", "![x](http://x/y)", "=cmd|'/c calc'!A1", "@SUM(1)", "+1", "-1"),
)
PATTERNS = (
    *(
        "(a+)+$",
        "(a|a)*b",
        "(.*a){20}",
        "a{1000}{1000}",
        "((((((((((a",
        "[",
        "[^",
        "\\",
        "(?",
        "(?P<",
    ),
    *("/(a+)+$/", "/.*/", "//", "/[/", "/\\Q/", "/a{99999}/", "/(?i)x/", "/\\p{L}/", "/(?=a)/"),
    *("\\1", "(a)\\1", "x*" * 50, "(" * 60 + ")" * 60, "/" + "(" * 60 + "a" + ")" * 60 + "/", "$A"),
    *(
        "/a\\C/",
        "/\\x{110000}/",
        "/[[:alpha:/",
        "/(?P<n>a)(?P<n>b)/",
        "$$$",
        "$NAME(",
        "a::b",
        "::",
    ),
)
DATA = (
    *("{", "}", "[", "null", "true", "[]", "{}", '{"a": 1', '{"__proto__": 1}', "[" * 200, '"'),
    *("a: &a [*a]", "- - -", "---", "...", "+++", "!!python/object:os.system", "? :", "key: value"),
    *("<<: *a", "\t- a", "a: |", "%YAML", "]:", "<xml>", "&x;", "a,b;c\td", '"a","b', "a\nb\nc"),
    *('{"limit": 1e999}', '{"limit": NaN}', '{"q": {}}', '{"topic": [[]]}', '{"a":' * 100),
)
NUMBERS = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "00",
        "1e9",
        "1e400",
        "-1e400",
        "NaN",
        "nan",
        "inf",
        "Infinity",
        "1_000",
    ),
    *("0x10", "0b1", "1.5", ".5", "5.", "1,5", "²", "٣", "½", "Ⅷ", "９", "1e", "--1", "+1", " 1 "),
    *("9" * 11, "9" * 20, "9" * 400, "2147483648", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "1e-400", "0.1e1", "1/0", "1d", "99999999999d", "0d", "-7d", "7 d"),
)
TIMES = (
    *("2024-02-30", "0000-00-00", "9999-12-31", "10000-01-01", "2024-13-01", "05/06/2024", "now"),
    *("today", "tomorrow", "24:00", "2024-05-01T25:00", "2024-05-01T10:00:60Z", "-1", "999999y"),
    *(
        "1 Foo 2024",
        "May 32, 2024",
        "Wed, 99 May 2024 10:00:00 +9999",
        "2024-05-01+99:99",
        "m",
        "7m",
    ),
)
QUERY = (
    *(
        "topic:",
        "type:",
        "in:",
        "since:",
        "until:",
        "topic:x",
        "-topic:x",
        "type:nope",
        "in:nobody",
    ),
    *(
        "since:soon",
        "until:9999-99-99",
        'topic:"',
        'in:"a b" c',
        "lex:",
        "vec:",
        "hyde:",
        "intent:",
    ),
    *(
        "lex: a\nvec: b\nhyde: c",
        "- -a --a",
        '-""',
        '-"a b"',
        "“typographic”",
        "„a“",
        "«b»",
        "tomato*",
    ),
    *("topic:a " * 100, "-a " * 300, '"a b" ' * 200, "lex: x\n" * 300, "since:1d " * 50, "re:x"),
)
LONG = (
    *("a" * 8_192, "a" * 8_193, "wort" * 5_000, "x " * 4_000, "\n" * 5_000, "é" * 8_000),
    *("🙂" * 3_000, '"' * 4_001, "(" * 2_000, "a-" * 4_000, "_" * 8_000, "\u0301" * 8_000),
)
KINDS: Mapping[str, Sequence[str]] = {
    "FTS5": FTS5,
    "SQL": SQL,
    "controls": CONTROLS,
    "halves": HALVES,
    "Unicode": UNICODE,
    "formats": FORMATS,
    "paths": PATHS,
    "HTML": HTML,
    "patterns": PATTERNS,
    "data": DATA,
    "numbers": NUMBERS,
    "times": TIMES,
    "queries": QUERY,
    "long": LONG,
}
"""Fixed strings by kind."""

EVERYDAY = ("tomatoes", "the database", "water", "Postgres", "")
JOINTS = ("", " ", " ", "\n", '"', ":", "/", "\x00", "\u200d", " AND ", ",", "=")
SHORT = 600  # characters of a piece in a combination: long ones stand for themselves


def strings(count: int) -> list[str]:
    """``count`` different ones: the fixed ones of all kinds in turn, then combinations."""
    different: dict[str, None] = {}
    for text in itertools.chain(_in_turn(), _combined()):
        different.setdefault(text)
        if len(different) == count:
            break
    return list(different)


def as_bytes(text: str) -> bytes:
    """The bytes meant by a string: those that are no UTF-8 where it has half pairs."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _in_turn() -> Iterator[str]:
    """One of each kind after the other, so that few strings are of all kinds already."""
    for row in itertools.zip_longest(*KINDS.values()):
        yield from (one for one in row if one is not None)


def _combined() -> Iterator[str]:
    chance = random.Random("naughty")
    while True:
        pieces = chance.choices(list(KINDS.values()), k=chance.randint(1, 4))
        parts = [_piece(chance, kind) for kind in pieces]
        if chance.random() < 0.3:
            parts.insert(chance.randrange(len(parts) + 1), chance.choice(EVERYDAY))
        text = chance.choice(JOINTS).join(parts)
        yield text * chance.choice((1, 1, 1, 1, 2, 9))


def _piece(chance: random.Random, kind: Sequence[str]) -> str:
    """One string of a kind, sometimes cut, turned round, or with any character put in."""
    piece = chance.choice(kind)[:SHORT]
    change = chance.random()
    if change < 0.15:
        return piece[: chance.randint(0, len(piece))]
    if change < 0.25:
        return piece[::-1]
    if change < 0.4:
        place = chance.randint(0, len(piece))
        return piece[:place] + chr(chance.randrange(0x110000)) + piece[place:]
    return piece.upper() if change < 0.5 else piece
