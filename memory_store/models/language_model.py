"""Language models, through Simon Willison's ``llm`` package: local or remote, as its plugins say.

Boundary: whatever is passed to :func:`ask` leaves this process, and the machine where the model
is a remote one. Nothing in this package calls it unless you chose a model or asked for an
answer. ``llm`` writes prompts to its log in its own command only, not when it is used as a
library, and nothing here logs them. A plugin's exception may quote a prompt or a key: of every
failure only the name of its class is passed on.

``llm`` takes half a second to import and its plugins may do anything while they are loaded, so
all of it happens in the call's own thread, within the call's time limit. Such a thread cannot be
killed: one that hangs is left behind (it keeps no process alive), and :data:`MOST_CALLS` bounds
how many there can be.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from time import monotonic
from types import MappingProxyType
from typing import Any

from memory_store.errors import ModelUnavailableError

INSTALL = "pip install 'datasette-hybrid[llm]'"
MOST_CALLS = 4  # at once, those left behind included: a model that hangs is soon left alone
SAMPLING_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"max_tokens": ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens")}
)
"""What plugins call an option that has several names; of the others there is one."""
NO_SAMPLING: Mapping[str, float] = MappingProxyType({})
_calls = threading.BoundedSemaphore(MOST_CALLS)
_loading = threading.Lock()  # llm marks its plugins as loaded before they are


_Event = str | ModelUnavailableError | None
"""The model's name, once it is loaded; its pieces of text; None at their end; or what failed."""


class Reply:
    """A model's answer while it arrives: iterate over its pieces of text, once."""

    def __init__(
        self,
        name: str | None,
        system: str | None,
        prompt: str | None,
        seconds: float,
        sampling: Mapping[str, float],
    ) -> None:
        """See :func:`ask`. Without a prompt the model is loaded, and asked nothing."""
        self._name = name
        self._deadline = monotonic() + seconds
        self._seconds = seconds
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._stopped = threading.Event()
        if not _calls.acquire(blocking=False):
            raise ModelUnavailableError(
                f"{MOST_CALLS} calls to language models have not come back yet",
                _try_it(name),
            )
        call = threading.Thread(
            target=_run,
            args=(name, system, prompt, sampling, self._events, self._stopped),
            name="language-model",
            daemon=True,
        )
        try:
            call.start()
        except RuntimeError:  # as many threads as this machine allows
            _calls.release()
            raise ModelUnavailableError("no thread is to be had", _try_it(name)) from None
        self.model = self._next() or ""

    def __iter__(self) -> Iterator[str]:
        try:
            while (piece := self._next()) is not None:
                yield piece
        finally:
            self._stopped.set()

    def text(self, most: int) -> str:
        """The whole answer, or its first ``most`` characters: no more is waited for."""
        pieces: list[str] = []
        length = 0
        for piece in self:
            pieces.append(piece)
            length += len(piece)
            if length >= most:
                break
        return "".join(pieces)[:most]

    def _next(self) -> str | None:
        try:
            event = self._events.get(timeout=max(0.0, self._deadline - monotonic()))
        except Empty:
            self._stopped.set()
            raise ModelUnavailableError(
                f"the language model did not answer within {self._seconds:.3g} seconds",
                _try_it(self._name),
            ) from None
        if isinstance(event, ModelUnavailableError):  # anew: its context may quote a prompt
            raise ModelUnavailableError(str(event), event.remedy)
        return event


def ask(
    name: str | None,
    system: str | None,
    prompt: str,
    *,
    seconds: float,
    sampling: Mapping[str, float] = NO_SAMPLING,
) -> Reply:
    """Put ``prompt`` to the model of that name or alias (``None``: ``llm``'s default model).

    ``sampling`` is by the names of :data:`SAMPLING_NAMES`; what a model has no option for is
    left to it. Returns once the model is loaded; its answer is still to come and must be there
    ``seconds`` from now. Raises :class:`ModelUnavailableError`, here or while the answer is read:
    ``llm`` or the model is missing, it has no key, it failed, or it was too slow.
    """
    _check_installed()
    return Reply(name, system, prompt, seconds, sampling)


def loadable(name: str | None, *, seconds: float) -> str:
    """The full name of a model that :func:`ask` could put a prompt to; it is sent nothing.

    Raises :class:`ModelUnavailableError`: ``llm`` or the model is missing, it has no key, or
    loading it took longer than ``seconds``.
    """
    _check_installed()
    return Reply(name, None, None, seconds, NO_SAMPLING).model


def _check_installed() -> None:
    if find_spec("llm") is None:
        raise ModelUnavailableError("the package llm is not installed", INSTALL)


def _run(
    name: str | None,
    system: str | None,
    prompt: str | None,
    sampling: Mapping[str, float],
    events: SimpleQueue[_Event],
    stopped: threading.Event,
) -> None:
    """One call, in its own thread. Every way out puts a last event."""
    try:
        with _loading:
            model = _loaded(name)
        events.put(str(model.model_id))
        if prompt is None:
            return
        options = _options(model, sampling)
        stream = bool(model.can_stream)
        for piece in model.prompt(prompt, system=system, stream=stream, **options):
            if stopped.is_set():
                break  # the caller reads no more: closing the stream ends a remote call, too
            events.put(piece)
        events.put(None)
    except ModelUnavailableError as error:
        events.put(error)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        reason = f"the language model failed ({type(error).__name__})"
        events.put(ModelUnavailableError(reason, _try_it(name)))
    finally:
        _calls.release()


def _options(model: Any, sampling: Mapping[str, float]) -> dict[str, float]:
    """The sampling under the names that a model's own options have."""
    known = getattr(getattr(model, "Options", None), "model_fields", {})
    named = {
        one: next((name for name in SAMPLING_NAMES.get(one, (one,)) if name in known), None)
        for one in sampling
    }
    return {name: sampling[one] for one, name in named.items() if name is not None}


def _loaded(name: str | None) -> Any:
    """The model. Raises :class:`ModelUnavailableError`, which quotes no exception of a plugin."""
    import llm

    try:
        model = llm.get_model(name)
        model.get_key()
    except llm.UnknownModelError:
        called = "no default model" if name is None else f"no language model {name!r}"
        raise ModelUnavailableError(f"llm knows {called}", "llm models") from None
    except llm.NeedsKeyException:
        key = shlex.quote(str(model.needs_key))
        reason = f"the language model {model.model_id} has no key"
        raise ModelUnavailableError(reason, f"llm keys set {key}") from None
    return model


def _try_it(name: str | None) -> str:
    """The command that shows, to its own user, what is wrong with a model."""
    return "llm hello" if name is None else f"llm -m {shlex.quote(name)} hello"
