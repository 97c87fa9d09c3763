"""Every endpoint of the JSON API: its address, what it needs, takes and answers.

One frozen table; a test holds it to the routes that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memory_store.host import ACTIONS, DIFFERING, NO, YES
from memory_store.records import (
    MAX_QUERY_CHARACTERS,
    OPTION_NAMES,
    Decision,
    ExistsRequest,
    MemoryChange,
    MemoryDraft,
    SearchRequest,
    WordsRequest,
)

from ..audit.pages import MOST
from ..audit.recorder import SURFACES
from ..code.api import MOST_ROWS
from . import answers, requests
from .schemas import Schema, What, options, parameter

BASE = "/{database}/-/hybrid"
MEMORIES, MEMORY = BASE + "/memories", BASE + "/memories/{id}"
SAVED_ONE = BASE + "/searches/{id}"
COLLECTION = BASE + "/collections/{id}"
CSV = "text/csv"

ANYWHERE = (400, 401, 403, 404, 423, 429, 500, 503)
WITH_BODY = (408, 409, 413)


class Operation(Struct, frozen=True):
    """One method of one address.

    ``answers``: status → a record of :mod:`.answers` or the store's own, or several of which it is
    one, or a content type; ``body`` is a record of what is taken, ``contents`` schemas of other
    types than JSON; ``body_needed`` is false where no body asks as an empty one does.
    """

    method: str
    path: str
    name: str
    summary: str
    needs: str
    answers: Mapping[int, What]
    parameters: tuple[Schema, ...] = ()
    body: What = None
    example: Any = None
    contents: Mapping[str, Schema] = {}
    body_needed: bool = True

    @property
    def tag(self) -> str:
        """The part of the API that it belongs to."""
        return self.path.removeprefix(BASE).strip("/").split("/")[0].partition(".")[0] or "search"

    @property
    def errors(self) -> tuple[int, ...]:
        """The statuses with which it refuses: with the schema ``Error``."""
        more = WITH_BODY if self.method != "GET" or self.tag == "search" else ()
        return (*ANYWHERE, *more, *((412,) if IF_MATCH in self.parameters else ()))


TEXT: Schema = {"type": "string"}
QUERY = {
    **parameter("q", {**TEXT, "maxLength": MAX_QUERY_CHARACTERS}, "The query"),
    "example": "spare key",
}
SHAPE = parameter("_shape", {"enum": ["objects", "array", "compact"]}, "How rows are answered")
OPTIONS = options(*OPTION_NAMES)
SIZE: Schema = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "max"}]}
LISTING = (
    *options("collection", "type", "topic", "status", "since", "until"),
    *options("as_of", "superseded", "by"),
    parameter("_size", SIZE, "Rows"),
    parameter("_next", TEXT, "`next` of the page before"),
)
AUDITING = (
    parameter("who", TEXT, "An actor's id, or what stands for one"),
    parameter("surface", TEXT, "Where from: " + ", ".join(SURFACES)),
    parameter("action", TEXT, "What was done: " + ", ".join(ACTIONS)),
    parameter("since", TEXT, "From then on: a date, a time, or 7d"),
    parameter("until", TEXT, "Until then"),
)
PAGE: Schema = {"type": "integer", "minimum": 1, "maximum": MOST}
NEAREST = parameter("limit", {"type": "integer", "minimum": 1, "maximum": 50}, "Memories")
SEVERAL: Schema = {"type": "array", "items": {"type": "string"}}
IN_COLLECTIONS = parameter("collection", SEVERAL, "In collections of these names or ids")
EXISTING = (
    {**parameter("term", SEVERAL, "Words; one without hybrid-decrypt"), "required": True},
    IN_COLLECTIONS,
    parameter("exact", {"enum": ["0", "1"]}, "Spelled exactly so; needs hybrid-decrypt"),
)
BEGINNING = (
    parameter("prefix", TEXT, "How they begin"),
    IN_COLLECTIONS,
    parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1_000}, "Words"),
)
OF_EACH = parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Of each kind")
AUDIT_PAGE = (
    parameter("limit", PAGE, "Events of a page"),
    parameter("before", {"type": "integer", "minimum": 0}, "`next` of the page before"),
)
IF_MATCH: Schema = {
    "name": "If-Match",
    "in": "header",
    "description": "The version that is expected, as in the ETag",
    "schema": {"type": "string", "pattern": r'^(\*|(W/)?"[0-9]{1,18}")$'},
}
UPLOADING = (
    parameter("name", TEXT, "The file's name, where the body is a file"),
    parameter("collection", TEXT, "Where its memories go: one that there is"),
    parameter("new_collection", TEXT, "Or the name of a new one, open to everybody"),
    parameter("type", TEXT, "Their type, where the file says none"),
    parameter("topics", TEXT, "Topics for all of them, apart by commas"),
    parameter(
        "differing",
        {"enum": list(DIFFERING)},
        "What to do with a file that says something else than its note from a folder: keep that "
        "note and name the file (the default), replace the note, or add another",
    ),
    parameter("keep_originals", TEXT, "1: seal each file as it is, too"),
    parameter("dry_run", TEXT, "1: only say what would happen"),
)
"""In a multipart form these are fields, and the files are named file."""
_BINARY: Schema = {"type": "string", "format": "binary"}
UPLOAD: Mapping[str, Schema] = {
    "multipart/form-data": {
        "type": "object",
        "properties": {
            "file": {"type": "array", "items": _BINARY, "minItems": 1},
            **{one["name"]: one["schema"] for one in UPLOADING if one["name"] != "name"},
        },
        "required": ["file"],
    },
    "application/octet-stream": _BINARY,
}

CODE = BASE + "/code"
IN_COLLECTION = options("collection")
CODE_FILE = {**parameter("file", TEXT, "A path, the end of one, or an id"), "required": True}
CODE_LINES = {
    **parameter("file", TEXT, "Such a file, or lines of it: `app.py:40`, `app.py:40-80`"),
    "required": True,
}
CODE_NAME = {**parameter("name", TEXT, "A symbol: `open`, `Session.open`"), "required": True}
CODE_OF = {**parameter("of", TEXT, "A file or a symbol"), "required": True}
_AT_LEAST_ONE: Schema = {"type": "integer", "minimum": 1}
CODE_BUDGET = parameter("budget", _AT_LEAST_ONE, "Tokens at most")
CODE_HOPS = parameter("hops", {**_AT_LEAST_ONE, "maximum": 10}, "Steps at most")
CODE_ROWS = parameter("limit", {**_AT_LEAST_ONE, "maximum": MOST_ROWS}, "Rows")
CODE_READING = (
    parameter("skeleton", {"enum": sorted((YES | NO) - {""})}, "Without the bodies of functions"),
    parameter("snap", {"const": "function"}, "Widen the lines, so that no function is cut"),
    parameter("if_changed", TEXT, "`hash` of an earlier answer: no text if it is the same"),
)

SEARCH, READ, WRITE = "hybrid-search", "hybrid-search or hybrid-decrypt", "hybrid-write"
AUDIT, DECRYPT = "hybrid-audit", "hybrid-decrypt"
ANY = "hybrid-search, hybrid-decrypt or hybrid-write"
FOUND = {200: (answers.SearchAnswer, tuple[answers.Row, ...], answers.CompactAnswer)}
ONE = {200: answers.Memories}
READ_SEALED, READ_AND_WRITE = "hybrid-decrypt", "hybrid-decrypt and hybrid-write"
IN_TRASH = parameter("memory", {"type": "string"}, "One memory's id: its earlier versions")
COLLECTIONS = {200: answers.Collections}
SAVED = {200: answers.SavedSearches}
SAVING = "hybrid-search, as an actor; no token with restrictions"

OPERATIONS = (
    Operation(
        "GET", BASE + ".json", "search", "Search", SEARCH, FOUND, (QUERY, SHAPE, *OPTIONS),
    ),
    Operation(
        "POST", BASE + ".json", "searchPosted", "Search, with a query that stands in no address",
        SEARCH, FOUND, (SHAPE,), SearchRequest, {"q": "spare key", "limit": 3},
    ),
    Operation(
        "GET", BASE + ".csv", "searchCsv", "The rows of a search as CSV", SEARCH, {200: CSV},
        (QUERY, *OPTIONS),
    ),
    Operation(
        "POST", BASE + ".csv", "searchCsvPosted",
        "The same, with a query that stands in no address", SEARCH, {200: CSV}, (), SearchRequest,
        {"q": "spare key"},
    ),
    Operation(
        "GET", MEMORIES + ".json", "listMemories", "List memories, newest first", READ,
        {200: answers.MemoryPage}, LISTING,
    ),
    Operation(
        "POST", MEMORIES + ".json", "addMemories", "Add one memory or many: all of them, or none",
        WRITE, dict.fromkeys((200, 201), answers.AddedMemories), (),
        (MemoryDraft, requests.Drafts, requests.NewMemories),
        {"text": "The ferry leaves at nine", "topics": ["travel"], "type": "fact"},
    ),
    Operation(
        "POST", MEMORIES + "/edit.json", "changeMemories",
        "Change many memories: all of them, or none", WRITE, ONE, (), requests.MemoryChanges,
        {"memories": [{"id": "6f1c2d3e-8a4b-4c5d-9e6f-7a8b9c0d1e2f", "title": "Ferries"}]},
    ),
    Operation(
        "POST", MEMORIES + "/delete.json", "deleteMemories", "Delete many memories",
        WRITE, {200: answers.Deleted}, (), requests.Ids,
        {"ids": ["6f1c2d3e-8a4b-4c5d-9e6f-7a8b9c0d1e2f"]},
    ),
    Operation(
        "GET", BASE + "/landscape.json", "landscape",
        "Topics that stand together and lie near in meaning", DECRYPT,
        {200: answers.LandscapeAnswer}, options("as_of"),
    ),
    Operation(
        "GET", BASE + "/exists.json", "exists",
        "Whether memories hold a word, or several side by side: as a search in quotes, by stems",
        SEARCH, {200: answers.Existences}, EXISTING,
    ),
    Operation(
        "POST", BASE + "/exists.json", "existsPosted",
        "The same, with terms that stand in no address", SEARCH, {200: answers.Existences}, (),
        ExistsRequest, {"term": ["boathouse"]},
    ),
    Operation(
        "GET", BASE + "/words.json", "words", "The words that begin so", "hybrid-search and "
        "hybrid-decrypt", {200: answers.Words}, BEGINNING,
    ),
    Operation(
        "POST", BASE + "/words.json", "wordsPosted", "The same, with what stands in no address",
        "hybrid-search and hybrid-decrypt", {200: answers.Words}, (), WordsRequest,
        {"prefix": "boat"}, body_needed=False,
    ),
    Operation(
        "GET", MEMORY + "/topics.json", "suggestTopics",
        "Topics that memories near to one have, and it has not", DECRYPT,
        {200: answers.SuggestedTopics},
    ),
    Operation(
        "GET", CODE + "/context.json", "codeContext",
        "What a repository is: languages, entry points, the files and symbols that are used most",
        DECRYPT, {200: answers.CodeContextAnswer}, (*IN_COLLECTION, CODE_BUDGET),
    ),
    Operation(
        "GET", CODE + "/outline.json", "codeOutline",
        "The definitions of a file, what it imports, and what imports it", DECRYPT,
        {200: answers.CodeOutlineAnswer}, (CODE_FILE, *IN_COLLECTION),
    ),
    Operation(
        "GET", CODE + "/symbols.json", "codeSymbols",
        "Where a name is defined, and which files and functions use it", DECRYPT,
        {200: answers.CodeSymbolsAnswer}, (CODE_NAME, *IN_COLLECTION, CODE_ROWS),
    ),
    Operation(
        "GET", CODE + "/references.json", "codeReferences", "The lines that use a name", DECRYPT,
        {200: answers.CodeReferencesAnswer}, (CODE_NAME, *IN_COLLECTION, CODE_ROWS),
    ),
    Operation(
        "GET", CODE + "/impact.json", "codeImpact", "Which files depend on a file or a symbol",
        DECRYPT, {200: answers.CodeImpactAnswer}, (CODE_OF, *IN_COLLECTION, CODE_HOPS),
    ),
    Operation(
        "GET", CODE + "/read.json", "codeRead", "Lines of a file", DECRYPT,
        {200: answers.CodeTextAnswer}, (CODE_LINES, *IN_COLLECTION, CODE_BUDGET, *CODE_READING),
    ),
    Operation(
        "GET", BASE + "/review.json", "review",
        "What may want putting in order: near duplicates, what may replace each other, what is "
        "over, what has no topic", DECRYPT, {200: answers.ReviewAnswer}, (OF_EACH,),
    ),
    Operation(
        "POST", BASE + "/review.json", "decide", "Decide on a pair, or on one memory",
        READ_AND_WRITE, {200: answers.Decided}, (), Decision,
        {"do": "topics", "id": "9b2d4e6f-1a3c-4f5e-8d7b-0c1e2f3a4b5d", "topics": ["travel"]},
    ),
    Operation(
        "GET", BASE + "/trash.json", "listTrash",
        "What was deleted or changed, newest first; the versions of one memory with their texts",
        READ_SEALED, {200: answers.TrashList}, (IN_TRASH,),
    ),
    Operation(
        "POST", BASE + "/trash/restore.json", "restoreMemories",
        "Put memories back as they were before they were deleted or changed", READ_AND_WRITE,
        ONE, (), requests.Restoration, {"ids": ["6f1c2d3e-8a4b-4c5d-9e6f-7a8b9c0d1e2f"]},
    ),
    Operation(
        "POST", BASE + "/trash/empty.json", "emptyTrash",
        "Erase what the trash has of some memories, or of all", READ_AND_WRITE,
        {200: answers.Erased}, (), requests.TrashIds, {},
    ),
    Operation(
        "GET", BASE + "/searches.json", "listSearches", "The asker's saved searches", SEARCH,
        SAVED,
    ),
    Operation(
        "POST", BASE + "/searches.json", "saveSearch", "Save a search under a name", SAVING,
        {201: answers.SavedSearches}, (), requests.NewSearch,
        {"name": "keys", "search": {"q": "spare key", "type": ["fact"]}},
    ),
    Operation("GET", SAVED_ONE + ".json", "getSearch", "One saved search", SEARCH, SAVED),
    Operation(
        "PATCH", SAVED_ONE + ".json", "renameSearch", "Give a saved search another name", SAVING,
        SAVED, (), requests.SearchName, {"name": "spare keys"},
    ),
    Operation(
        "DELETE", SAVED_ONE + ".json", "removeSearch", "Forget a saved search; its feed ends",
        SAVING, {200: answers.Done},
    ),
    Operation(
        "POST", SAVED_ONE + "/feed.json", "makeFeed",
        "Make a feed of a saved search; its token is shown this once",
        f"{SAVING}; no token", {201: answers.NewFeed},
    ),
    Operation(
        "DELETE", SAVED_ONE + "/feed.json", "endFeed", "End the feed of a saved search", SAVING,
        SAVED,
    ),
    Operation("GET", MEMORY + ".json", "getMemory", "One memory", READ, ONE, options("as_of")),
    Operation(
        "GET", MEMORY + "/links.json", "getLinks",
        "What a memory links to, and what links to it", "hybrid-decrypt", {200: answers.Links},
    ),
    Operation(
        "GET", MEMORY + "/related.json", "getRelated", "The memories nearest to one, and why",
        "hybrid-search and hybrid-decrypt", {200: answers.RelatedMemories}, (NEAREST,),
    ),
    Operation(
        "PATCH", MEMORY + ".json", "changeMemory", "Change a memory: what is not named stays",
        WRITE, ONE, (IF_MATCH,), MemoryChange, {"title": "Ferries", "version": 1},
    ),
    Operation(
        "DELETE", MEMORY + ".json", "deleteMemory", "Delete a memory: it goes to the trash", WRITE,
        {200: answers.Done}, (IF_MATCH,),
    ),
    Operation(
        "POST", MEMORY + "/done.json", "completeMemory", "Mark a memory as completed", WRITE, ONE,
        (IF_MATCH,),
    ),
    Operation(
        "POST", MEMORY + "/reopen.json", "reopenMemory", "Mark a memory as open again", WRITE, ONE,
        (IF_MATCH,),
    ),
    Operation(
        "POST", MEMORY + "/publish.json", "publishMemory",
        "Copy a memory into another collection; again gives the same copy",
        "hybrid-decrypt where it is and hybrid-write where it goes", ONE, (), requests.Publication,
        {"collection": "team"},
    ),
    Operation(
        "GET", BASE + "/collections.json", "listCollections",
        "The collections that the asker may use", ANY, COLLECTIONS,
    ),
    Operation(
        "POST", BASE + "/collections.json", "createCollection",
        "Make a collection, open or the asker's own", "hybrid-write on the database",
        {201: answers.Collections}, (), requests.NewCollection, {"name": "team", "private": True},
    ),
    Operation("GET", COLLECTION + ".json", "getCollection", "One collection", ANY, COLLECTIONS),
    Operation(
        "PATCH", COLLECTION + ".json", "changeCollection",
        "Rename a collection, or choose its members",
        "to own it; hybrid-write to rename an open one", COLLECTIONS, (),
        requests.CollectionChange, {"members": {"bob": "reader"}},
    ),
    Operation(
        "PUT", COLLECTION + "/members/{actor}.json", "setMember", "Give an actor a role",
        "to own the collection", {200: answers.Member}, (), requests.RoleChange,
        {"role": "reader"},
    ),
    Operation(
        "DELETE", COLLECTION + "/members/{actor}.json", "removeMember",
        "Take an actor's role away", "to own the collection", {200: answers.Member},
    ),
    Operation(
        "GET", BASE + "/audit.json", "listAudit", "Who opened how much, newest first", AUDIT,
        {200: answers.AuditPage}, (*AUDITING, *AUDIT_PAGE),
    ),
    Operation(
        "GET", BASE + "/audit.csv", "auditCsv", "The same as CSV, oldest first", AUDIT,
        {200: CSV}, AUDITING,
    ),
    Operation(
        "POST", BASE + "/import.json", "upload",
        "Import files: a multipart form, or one file as the body whose name is given", WRITE,
        {202: answers.ImportJob}, UPLOADING, contents=UPLOAD,
    ),
    Operation(
        "GET", BASE + "/import/{job}.json", "followImport", "How far an import is", WRITE,
        {200: answers.ImportJob},
    ),
    Operation(
        "DELETE", BASE + "/import/{job}.json", "stopImport",
        "Stop an import after the file that it is at", WRITE, {200: answers.ImportJob},
    ),
)  # fmt: skip
