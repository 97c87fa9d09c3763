"""What each tool takes: a record for each, which makes its schema and checks what it is given.

Boundary: descriptions are constants. None of them quotes a memory.
"""

# Annotations are not postponed: the schemas are made from them.

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

BUDGET, LEAST_BUDGET, MOST_BUDGET = 2_000, 150, 20_000  # tokens of an answer
MOST_AT_ONCE = 50  # memories in one call

Budget = Annotated[
    int,
    Meta(ge=LEAST_BUDGET, le=MOST_BUDGET, description="Tokens at most"),
]
Names = list[str]


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(description="What it is about, if known")] = ""
    budget: Budget = BUDGET


class Survey(Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str = ""
    budget: Budget = BUDGET


class Find(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        Meta(description='Plain words; "a phrase", -word, topic:x, type:x, since:2024-05 work'),
    ] = ""
    mode: Annotated[
        Literal["hybrid", "literal", "structural"],
        Meta(description="literal: text or /regex/; structural: code with $HOLES"),
    ] = "hybrid"
    language: Annotated[str, Meta(description="of a structural query")] = ""
    limit: Annotated[int, Meta(ge=1, le=32)] = 8
    collection: Names = []
    type: Names = []
    topic: Names = []
    status: Literal["open", "done", "all"] = "all"
    since: Annotated[str, Meta(description="2024-05-01, 7d, 3w")] = ""
    until: str = ""
    as_of: Annotated[str, Meta(description="As it was known then")] = ""
    superseded: Annotated[bool, Meta(description="Also what was replaced")] = False
    by: str = ""
    like: Annotated[str, Meta(description="Id of a memory to find others like")] = ""
    deep: Annotated[bool, Meta(description="Look further, slower")] = False
    budget: Budget = BUDGET
    format: Literal["shorter", "json", "compact"] = "shorter"
    continue_: Annotated[str, Meta(description="continue of the last answer")] = field(
        default="", name="continue"
    )


class Read(Struct, frozen=True, forbid_unknown_fields=True):
    ids: Annotated[Names, Meta(min_length=1, max_length=20)]
    start: Annotated[int, Meta(ge=0, description="From next_start on")] = 0
    as_of: Annotated[str, Meta(description="What stood there then")] = ""
    budget: Budget = 2 * BUDGET


class New(Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, description="Verbatim, Markdown")]
    title: str = ""
    type: Annotated[
        str, Meta(description="fact, note, preference, decision, task, summary, result …")
    ] = "fact"
    topics: Names = []
    collection: str = ""
    parent: Annotated[str, Meta(description="Id: a result's task")] = ""
    valid_from: str = ""
    valid_to: str = ""
    due: str = ""


class Add(Struct, frozen=True, forbid_unknown_fields=True):
    memories: Annotated[list[New], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    if_new: Annotated[bool, Meta(description="Leave out what is known already")] = False


class Update(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    version: Annotated[int | None, Meta(description="As memory_read gave it")] = None
    text: str | None = None
    title: str | None = None
    type: str | None = None
    add_topics: Names = []
    remove_topics: Names = []
    valid_to: str | None = None
    due: str | None = None
    tick: Annotated[list[int], Meta(description="Steps (- [ ]) to tick, from 1")] = []
    done: Annotated[bool | None, Meta(description="Complete it, or open it again")] = None
    supersede: Annotated[
        str | None, Meta(description="New text: the old memory stays, valid until now")
    ] = None
    delete: Annotated[bool, Meta(description="Into the trash; needs version")] = False


class Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    status: Literal["open", "done", "all"] = "open"
    due_by: str = ""
    topic: Names = []
    collection: Names = []
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    budget: Budget = BUDGET
