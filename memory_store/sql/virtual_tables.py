"""SQLite's virtual-table interface as ctypes sees it: structures, callbacks, functions.

Names are those of ``sqlite3.h``, so that its documentation is this module's. What is declared here
has kept its layout since SQLite 3.10; newer fields stand behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_ubyte,
    c_uint64,
    c_void_p,
)
from typing import Any

OK, ERROR, NOMEM, INTERRUPT, CONSTRAINT = 0, 1, 7, 9, 19  # result codes
INTEGER, FLOAT, TEXT, BLOB = 1, 2, 3, 4  # fundamental datatypes
EQUALS = 2  # SQLITE_INDEX_CONSTRAINT_EQ
TRANSIENT = -1  # SQLITE_TRANSIENT: SQLite copies the bytes at once


class Vtab(ctypes.Structure):
    """``sqlite3_vtab``, and behind it the connection and the function that it belongs to."""

    _fields_ = (
        *(("pModule", c_void_p), ("nRef", c_int), ("zErrMsg", c_void_p)),
        *(("db", c_void_p), ("number", c_int)),
    )


class VtabCursor(ctypes.Structure):
    """``sqlite3_vtab_cursor``."""

    _fields_ = (("pVtab", POINTER(Vtab)),)


class IndexConstraint(ctypes.Structure):
    """``sqlite3_index_constraint``: a term of ``where``."""

    _fields_ = (("iColumn", c_int), ("op", c_ubyte), ("usable", c_ubyte), ("iTermOffset", c_int))


class IndexOrderBy(ctypes.Structure):
    """``sqlite3_index_orderby``: a term of ``order by``."""

    _fields_ = (("iColumn", c_int), ("desc", c_ubyte))


class IndexConstraintUsage(ctypes.Structure):
    """``sqlite3_index_constraint_usage``: where ``xFilter`` gets the value of a constraint."""

    _fields_ = (("argvIndex", c_int), ("omit", c_ubyte))


class IndexInfo(ctypes.Structure):
    """``sqlite3_index_info``: a plan that SQLite asks about, and the answer."""

    _fields_ = (
        ("nConstraint", c_int),
        ("aConstraint", POINTER(IndexConstraint)),
        ("nOrderBy", c_int),
        ("aOrderBy", POINTER(IndexOrderBy)),
        ("aConstraintUsage", POINTER(IndexConstraintUsage)),
        ("idxNum", c_int),
        ("idxStr", c_void_p),
        ("needToFreeIdxStr", c_int),
        ("orderByConsumed", c_int),
        ("estimatedCost", c_double),
        ("estimatedRows", c_int64),
        ("idxFlags", c_int),
        ("colUsed", c_uint64),
    )


CALLBACKS: Mapping[str, Any] = {
    "xConnect": CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p, POINTER(c_void_p), c_void_p),
    "xBestIndex": CFUNCTYPE(c_int, c_void_p, POINTER(IndexInfo)),
    "xOpen": CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p)),
    "xClose": CFUNCTYPE(c_int, c_void_p),
    "xFilter": CFUNCTYPE(c_int, c_void_p, c_int, c_char_p, c_int, POINTER(c_void_p)),
    "xNext": CFUNCTYPE(c_int, c_void_p),
    "xEof": CFUNCTYPE(c_int, c_void_p),
    "xColumn": CFUNCTYPE(c_int, c_void_p, c_void_p, c_int),
    "xRowid": CFUNCTYPE(c_int, c_void_p, POINTER(c_int64)),
}
"""What a table that is only read has to answer, besides ``xDisconnect``."""


METHODS = (
    *("xCreate", "xConnect", "xBestIndex", "xDisconnect", "xDestroy"),
    *("xOpen", "xClose", "xFilter", "xNext", "xEof", "xColumn", "xRowid"),
    *("xUpdate", "xBegin", "xSync", "xCommit", "xRollback", "xFindFunction", "xRename"),
)


class Module(ctypes.Structure):
    """``sqlite3_module``, version 0."""

    _fields_ = (("iVersion", c_int), *((name, c_void_p) for name in METHODS))


FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "sqlite3_create_module_v2": (c_int, c_void_p, c_char_p, c_void_p, c_void_p, c_void_p),
    "sqlite3_declare_vtab": (c_int, c_void_p, c_char_p),
    "sqlite3_free": (None, c_void_p),
    "sqlite3_malloc": (c_void_p, c_int),
    "sqlite3_result_blob": (None, c_void_p, c_char_p, c_int, c_void_p),
    "sqlite3_result_double": (None, c_void_p, c_double),
    "sqlite3_result_int64": (None, c_void_p, c_int64),
    "sqlite3_result_null": (None, c_void_p),
    "sqlite3_result_text": (None, c_void_p, c_char_p, c_int, c_void_p),
    "sqlite3_value_blob": (c_void_p, c_void_p),
    "sqlite3_value_bytes": (c_int, c_void_p),
    "sqlite3_value_double": (c_double, c_void_p),
    "sqlite3_value_int64": (c_int64, c_void_p),
    "sqlite3_value_text": (c_void_p, c_void_p),
    "sqlite3_value_type": (c_int, c_void_p),
    "sqlite3_vfs_find": (c_void_p, c_char_p),
    "sqlite3_vtab_collation": (c_char_p, POINTER(IndexInfo), c_int),
}
"""The functions used: their result, then their arguments."""


class Library:
    """SQLite's functions, as attributes named as in ``sqlite3.h`` without ``sqlite3_``.

    They keep the interpreter's lock: each takes less time than getting the lock back would, beside
    another thread that is busy.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        holding = ctypes.PyDLL(library._name, handle=library._handle)
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(holding, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("sqlite3_"), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SQLite has no function {name} here")

    def address(self, name: str) -> int | None:
        """Where a function lies in memory, for SQLite to call it."""
        return ctypes.cast(getattr(self, name), c_void_p).value

    def allocated(self, size: int) -> int:
        """The address of ``size`` zeroed bytes that SQLite will free. Raises ``MemoryError``."""
        address: int | None = self.malloc(size)
        if not address:
            raise MemoryError
        ctypes.memset(address, 0, size)
        return address

    def copied(self, text: str) -> int:
        """The address of ``text`` as a C string that SQLite will free."""
        words = text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"
        address = self.allocated(len(words))
        ctypes.memmove(address, words, len(words))
        return address

    def value(self, pointer: int) -> Any:
        """The Python value of a ``sqlite3_value``."""
        kind = self.value_type(pointer)
        if kind == INTEGER:
            return self.value_int64(pointer)
        if kind == FLOAT:
            return self.value_double(pointer)
        if kind == TEXT:
            text = self.value_text(pointer)  # before its size: it may convert from UTF-16
            return ctypes.string_at(text, self.value_bytes(pointer)).decode("utf-8", "replace")
        if kind == BLOB:
            size = self.value_bytes(pointer)
            return ctypes.string_at(self.value_blob(pointer), size) if size else b""
        return None

    def answer(self, context: int, value: Any) -> None:
        """Give a cell's value to SQLite."""
        if isinstance(value, str):  # first: most cells are
            text = value.encode("utf-8", "replace")
            self.result_text(context, text, len(text), TRANSIENT)
        elif value is None:
            self.result_null(context)
        elif isinstance(value, int):
            self.result_int64(context, value)
        elif isinstance(value, float):
            self.result_double(context, value)
        else:
            self.result_blob(context, value, len(value), TRANSIENT)
