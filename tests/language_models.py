"""Language models for tests: a plugin of ``llm`` whose models say what they are asked to.

They are real models in real plugins; nothing of the store is replaced. ``echo``, from the package
``llm-echo``, is there besides.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llm
import pytest
from llm.plugins import load_plugins, pm

GOOD = """\
Here are some ideas:
lex: automobile garage
vec: where the automobile is kept
hyde: The automobile needs new brake pads, said the garage.
"""


class Scripted(llm.Model):
    """Answers with ``answer``, word by word, and remembers what it was given."""

    can_stream = True

    def __init__(self, model_id: str, answer: str | Callable[[str], str]) -> None:
        self.model_id = model_id
        self.answer = answer
        self.given: list[tuple[str, str]] = []

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
        self.given.append((prompt.system or "", prompt.prompt))
        answer = self.answer if isinstance(self.answer, str) else self.answer(prompt.prompt)
        yield from re.findall(r"\S+\s*|\s+", answer)


class Sampling(Scripted):
    """A model of one of the plugins with options, which remembers those, too."""

    class Options(llm.Options):
        num_predict: int | None = None
        temperature: float | None = None
        top_k: int | None = None

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
        self.options = prompt.options.model_dump(exclude_none=True)
        yield from super().execute(prompt, stream, response, conversation)


class Hanging(llm.Model):
    """Says nothing until the test is over."""

    model_id = "hangs"

    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
        self.over.wait(60)
        yield "lex: too late"


class Raising(llm.Model):
    """Fails, quoting the prompt and a key, as careless plugins do."""

    model_id = "raises"

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
        raise ValueError(f"sk-secret-key could not be used for {prompt.prompt}")


@dataclass
class LanguageModels:
    """The plugin: its models by name, and where ``llm`` keeps its files meanwhile."""

    folder: Path
    over: threading.Event = field(default_factory=threading.Event)
    models: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.add("good", GOOD)
        self.add("junk", "I would rather talk about something else.\nLEX: no\n- lex: no\n")
        self.models["sampling"] = Sampling("sampling", GOOD)
        self.models["hangs"] = Hanging(self.over)
        self.models["raises"] = Raising()

    def add(self, name: str, answer: str | Callable[[str], str]) -> Scripted:
        """A model of that name with that answer (or a function from the prompt to one)."""
        self.models[name] = Scripted(name, answer)
        return self.models[name]

    def given(self, name: str) -> list[tuple[str, str]]:
        """What that model was given so far: (system, prompt) pairs."""
        return self.models[name].given

    @llm.hookimpl
    def register_models(self, register: Any) -> None:
        for model in self.models.values():
            register(model)


@contextmanager
def installed(folder: Path) -> Iterator[LanguageModels]:
    """The plugin, registered as a package's entry point would be; ``llm``'s files in ``folder``."""
    plugin = LanguageModels(folder)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LLM_USER_PATH", str(folder))
        environment.delenv("MEMORY_STORE_EXPANDER", raising=False)
        load_plugins()
        pm.register(plugin, name="language-models-of-the-tests")
        try:
            yield plugin
        finally:
            plugin.over.set()
            pm.unregister(plugin)
