"""The nouns of the store: plain frozen records that travel between the stages."""

from memory_store.records.answers import ANSWER_BUDGET, ANSWER_SOURCES, Answer, Citation
from memory_store.records.collections import CollectionInfo
from memory_store.records.imports import (
    LISTED_IDS,
    Embedded,
    Embedding,
    ImportReport,
    PoorlyRead,
    Progress,
    SourceInfo,
    unheard,
)
from memory_store.records.landscape import Landscape, LandscapeRegion
from memory_store.records.links import Linked, MemoryLinks, Related, Unfolded, Unresolved
from memory_store.records.memories import (
    BY,
    DONE_SUFFIX,
    TYPES,
    Addition,
    Memory,
    MemoryChange,
    MemoryDraft,
    MemoryHead,
    Original,
    Reference,
    SealedMemory,
    base_type,
    check_types,
    read_record,
)
from memory_store.records.request import (
    DEFAULT_LIMIT,
    LIMIT_DEEP,
    LIMIT_STANDARD,
    MAX_QUERY_CHARACTERS,
    MODES,
    OPTION_NAMES,
    OPTIONS,
    STATUSES,
    SearchRequest,
    read_request,
    search_request,
    several,
)
from memory_store.records.review import Decision, Review, Reviewed, ReviewedPair, SuggestedTopic
from memory_store.records.saved_searches import HOLDER, SavedSearch
from memory_store.records.searches import (
    RESULT_COLUMNS,
    Match,
    Passage,
    Ranking,
    SearchResponse,
    SearchResult,
)
from memory_store.records.trash import TrashEntry, Undone
from memory_store.records.vaults import VaultSettings
from memory_store.records.words import Existence, ExistsRequest, WordCount, WordsRequest

SearchOptions = SearchRequest
"""The same record under the name that programs import."""
