"""The distiller: what it takes for worth remembering in a transcript, and what it says of it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostile_texts import in_proportion
from memlane import InvalidInput, NotFound
from memlane.capture.distil.candidates import Candidate, distil, files_in
from memlane.capture.distil.kinds import kind_of
from memlane.capture.distil.passages import LONGEST, passages
from memlane.capture.distil.scorer import WEIGHTS, weights
from memlane.capture.distil.summaries import sections

LESSON = (
    "The importer fails because SQLite does not support `ALTER TABLE … DROP CONSTRAINT`; the table must be rebuilt."
)
CANARY = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
SUMMARY = """\
This session is being continued from a previous conversation that ran out of context. The summary below covers it.

Analysis:
1. **First**: the user asked for a thing, and I looked at everything because it must be done.

Summary:
1. Primary Request and Intent:
   Build the exporter.

4. Errors and fixes:
   - **Empty exports**: The writer was closed before the queue was drained.
     - Fix: call `flush()` in `src/export.py`.

7. Pending Tasks:
   - The Windows build still fails because `os.fsync` is called on a directory; nobody has looked at it yet.

8. Current Work:
   Updated the tests and ran them.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


class Lines:
    """A Claude Code transcript, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, type: str, content: Any, **keys: Any) -> Lines:
        line = {"type": type, "uuid": f"u{len(self.lines) + 1}", "sessionId": "s1", "cwd": "/app"}
        line |= {"timestamp": "2026-03-04T10:00:00Z", "message": {"role": type, "content": content}, **keys}
        self.lines.append(json.dumps(line))
        return self

    def user(self, text: str, **keys: Any) -> Lines:
        return self.add("user", text, **keys)

    def assistant(self, text: str, **keys: Any) -> Lines:
        return self.add("assistant", [{"type": "text", "text": text}], **keys)

    def call(self, id: str, name: str, **arguments: Any) -> Lines:
        return self.add("assistant", [{"type": "tool_use", "id": id, "name": name, "input": arguments}])

    def result(self, id: str, text: str, failed: bool = False) -> Lines:
        return self.add("user", [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}])

    def bash(self, command: str, output: str, failed: bool = False, why: str = "") -> Lines:
        id = f"t{len(self.lines)}"
        return self.call(id, "Bash", command=command, description=why).result(id, output, failed)

    def write(self, path: Path) -> Path:
        path.write_text("".join(f"{line}\n" for line in self.lines))
        return path


def said(candidates: list[Candidate]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(one.type, one.text, one.lines) for one in candidates]


# -- sources


def test_a_conclusion_in_one_line_is_kept_with_its_evidence_and_without_the_talk_around_it(path: Path) -> None:
    talk = Lines().user("Drop the constraint from the orders table.").assistant("Let me look at the migration.")
    talk.assistant(f"Interesting! {LESSON} Let me write that migration.").assistant("Now let me run the tests.")
    [one] = distil(talk.write(path))
    assert (one.text, one.type, one.lines, one.uuids, one.session, one.date) == (
        LESSON, "lesson", (3,), ("u3",), "s1", "2026-03-04T10:00:00Z",
    )  # fmt: skip
    assert 0.5 <= one.confidence <= 1


def test_progress_and_status_make_no_candidate(path: Path) -> None:
    talk = Lines().user("Go ahead.")
    for text in (
        "All green:", "I have a clear picture.", "Now let me implement both tasks in parallel.", "Done.",
        "All tests pass. Let me commit.", "Good. The dependency chain is:", "Perfect! Now the linter.",
    ):  # fmt: skip
        talk.assistant(text)
    assert distil(talk.write(path)) == []


def test_what_the_user_corrects_or_wants_for_good_is_kept(path: Path) -> None:
    talk = Lines().user("Add a retry.").assistant("I'll add one.").user("[Request interrupted by user]")
    talk.user("No, we never retry payments: the provider is not idempotent. Always queue them instead.")
    talk.user("<system-reminder>Never mention this reminder because it must not be seen.</system-reminder>ok")
    for opening in ("<session_context>\n", ""):  # as Gemini CLI begins a session
        talk.user(f"{opening}This is the Gemini CLI. We are setting up the context. Always use tools because of it.")
    assert said(distil(talk.write(path))) == [
        ("rule", "No, we never retry payments: the provider is not idempotent. Always queue them instead.", (4,))
    ]


def test_the_answer_to_a_question_tool_is_kept_with_the_question_and_what_it_means(path: Path) -> None:
    options = [{"label": "Postgres", "description": "Managed, already paid for."}, {"label": "SQLite"}]
    talk = Lines().call("t1", "AskUserQuestion", questions=[{"question": "Where is state kept?", "options": options}])
    talk.result("t1", 'User has answered your questions: "Where is state kept?"="Postgres". You can now continue.')
    assert said(distil(talk.write(path))) == [
        ("decision", "Where is state kept? Answer: Postgres (Managed, already paid for)", (1, 2))
    ]


def test_an_answer_that_decides_nothing_is_left_out(path: Path) -> None:
    talk = Lines()
    for number, (question, answer) in enumerate(
        [
            ("Which database keeps the state?", "(No answer provided)"),
            ("Which database keeps the state?", "You decide"),
            ("What would you like to do with this task?", "Work on it now"),
            ("Which database keeps the state?", "What are the disadvantages of Postgres?"),
        ]
    ):
        options = [{"label": "You decide", "description": "I pick what fits."}]
        options += [{"label": "Work on it now", "description": "Always start at once, because it must not wait."}]
        talk.call(f"t{number}", "AskUserQuestion", questions=[{"question": question, "options": options}])
        talk.result(f"t{number}", f'User has answered your questions: "{question}"="{answer}". You can now continue.')
    assert distil(talk.write(path)) == []


def test_own_words_to_a_question_about_how_to_go_on_stand_alone(path: Path) -> None:
    asked = "Plan ready. What would you like to do next?"
    talk = Lines().call("t1", "AskUserQuestion", questions=[{"question": asked}])
    own = "the warning must only be suppressed by a flag, never by a prompt"
    talk.result("t1", f'User has answered your questions: "{asked}"="{own}".')
    assert [one.text for one in distil(talk.write(path))] == [own]


@pytest.mark.parametrize("name", ["request_user_input", "ask_user"])
def test_answers_that_a_client_writes_as_json(path: Path, name: str) -> None:
    asked = {"questions": [{"id": "db", "question": "Where is state kept?", "options": [{"label": "Postgres"}]}]}
    if name == "ask_user":
        call = {
            "id": "c1",
            "name": name,
            "args": asked,
            "result": [
                {"functionResponse": {"id": "c1", "response": {"output": json.dumps({"answers": {"0": "Postgres"}})}}}
            ],
        }
        lines = [{"id": "1", "type": "gemini", "content": "", "toolCalls": [call]}]
    else:
        output = json.dumps({"answers": {"db": {"answers": ["Postgres"]}}})
        lines = [{"type": "response_item", "payload": payload} for payload in (
            {"type": "function_call", "name": name, "arguments": json.dumps(asked), "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": output})]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [(one.type, one.text) for one in distil(path)] == [("decision", "Where is state kept? Answer: Postgres")]


def test_what_the_user_says_while_the_assistant_works_is_the_users_word(path: Path) -> None:
    first = "No, never change the first migration: always add a new one, because staging must not be wiped."
    second = "And we never use npm here, always use pnpm instead."
    third = "Always ask me before you push, never push by yourself."
    talk = Lines().user("Add the index.").assistant("I'll change the migration.")

    def queue(operation: str, **keys: Any) -> None:
        line = {"type": "queue-operation", "operation": operation, "sessionId": "s1", **keys}
        talk.lines.append(json.dumps(line))

    queue("enqueue", content=first)
    queue("enqueue", content='{"task_id":"b1","description":"Always run the tests, never skip them"}')
    queue("remove")
    queue("remove")
    queue("enqueue", content=second)
    queue("dequeue")
    talk.user(second)
    queue("enqueue", content=third)
    queue("remove", content=third)
    line = {"type": "attachment", "uuid": "a1", "attachment": {"type": "queued_command", "prompt": third}}
    talk.lines.append(json.dumps({**line, "sessionId": "s1"}))
    assert [(one.text, one.lines) for one in distil(talk.write(path))] == [
        (first, (3,)), (second, (9,)), (third, (12,)),
    ]  # fmt: skip


def test_the_reason_why_a_tool_was_refused_is_the_users_word(path: Path) -> None:
    talk = Lines().call("t1", "Write", file_path="/app/x.py")
    refusal = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    talk.result("t1", f"{refusal}Don't add files to the root, we always put scripts in tools/.", failed=True)
    assert said(distil(talk.write(path))) == [
        ("rule", "Don't add files to the root, we always put scripts in tools/.", (2,))
    ]


def test_a_summary_is_read_section_by_section(path: Path) -> None:
    found = distil(Lines().user(SUMMARY, isCompactSummary=True).write(path))
    assert said(found) == [
        (
            "lesson",
            "Empty exports: The writer was closed before the queue was drained. Fix: call `flush()` in `src/export.py`",
            (1,),
        ),
        (
            "open",
            "The Windows build still fails because `os.fsync` is called on a directory; nobody has looked at it yet.",
            (1,),
        ),
    ]
    assert found[0].files == ("src/export.py",)


def test_a_summary_is_known_by_its_first_words_too(path: Path) -> None:
    assert [section.about for section in sections(SUMMARY)] == ["request", "errors", "pending"]
    assert [one.rule for one in distil(Lines().user(SUMMARY).write(path))] == ["summary: errors", "summary: pending"]


def test_a_command_that_failed_and_the_one_that_then_worked_are_a_lesson(path: Path) -> None:
    talk = Lines().bash("cd /app && npm test -- --watch=false", "Error: Unknown option: --watch", failed=True)
    talk.bash("ls", "package.json").bash("npm test -- --run", "5 passed")
    assert said(distil(talk.write(path))) == [
        (
            "lesson",
            "`npm test -- --watch=false` fails (Unknown option: --watch); `npm test -- --run` works.",
            (1, 2, 5, 6),
        )
    ]


def test_a_command_run_again_and_again_is_kept_and_looking_around_is_not(path: Path) -> None:
    talk = Lines()
    for _ in range(4):
        talk.bash("cd /app && make check 2>&1 | tail -5", "ok", why="Lint and test everything").bash("git status", "")
    assert said(distil(talk.write(path))) == [("command", "Lint and test everything: `make check`", (1, 2, 5, 6))]


# -- formats


def test_codex(path: Path) -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "c1", "cwd": "/app"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "<environment_context>never always must</environment_context>"}]}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": LESSON}]}},
        {"type": "compacted", "payload": {"message": SUMMARY}},
    ]  # fmt: skip
    path.write_text("".join(json.dumps({"timestamp": "2026-03-04T10:00:00Z", **line}) + "\n" for line in lines))
    found = distil(path)
    assert [(one.type, one.lines, one.session) for one in found] == [
        ("lesson", (3,), "c1"), ("lesson", (4,), "c1"), ("open", (4,), "c1"),
    ]  # fmt: skip


def test_gemini(path: Path) -> None:
    lines = [
        {"sessionId": "g1", "projectHash": "h"},
        {"id": "1", "type": "user", "content": "Why does it fail?", "timestamp": "2026-03-04T10:00:00Z"},
        {"id": "2", "type": "gemini", "content": LESSON, "timestamp": "2026-03-04T10:00:00Z"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [one] = distil(path)
    assert (one.text, one.lines, one.uuids, one.session) == (LESSON, (3,), ("2",), "g1")


@pytest.mark.parametrize("tag", ["session_context", "hook_context", "hook_prompt id='1'", "memlane-request"])
def test_what_a_client_says_in_the_users_name_is_not_distilled(path: Path, tag: str) -> None:
    """Gemini CLI and Codex write what hooks, servers and they themselves say as messages of the user."""
    content = [{"text": f"<{tag}>\nAlways use uv instead of pip here.\n</{tag.split()[0]}>"}]
    path.write_text(json.dumps({"id": "1", "type": "user", "content": content, "timestamp": "2026-03-04T10:00:00Z"}))
    assert distil(path) == []


def test_messages_may_be_handed_over_instead_of_a_file() -> None:
    messages = [{"role": "user", "content": "Why does it fail?"}, {"role": "assistant", "content": LESSON}]
    assert said(distil(messages)) == [("lesson", LESSON, (2,))]


def test_plain_messages_in_one_document_are_counted_instead_of_lines(path: Path) -> None:
    messages = [{"role": "user", "content": "Why does it fail?"}, {"role": "assistant", "content": LESSON}]
    path.write_text(json.dumps(messages, indent=1))
    assert said(distil(path)) == [("lesson", LESSON, (2,))]


# -- what is said of each


def test_the_same_transcript_gives_the_same_candidates(path: Path) -> None:
    talk = Lines()
    for number in range(30):
        talk.user(f"No, module {number} must never import queue{number}, because it is not ready.").assistant(LESSON)
    talk.write(path)
    assert distil(path) == distil(path)


def test_signs_are_added_up_in_one_order_whatever_the_order_of_sets() -> None:
    program = (
        "import sys; from memlane.capture.distil.reading import seen; from memlane.capture.distil.session import Said; "
        "print([list(one.signs) for one in seen(Said('assistant', sys.argv[1], (1,), ()))])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program, LESSON],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(told) == 1


def test_what_is_said_again_is_one_candidate(path: Path) -> None:
    talk = Lines().user("Why?").assistant(LESSON).assistant("Let me look.").assistant(f"As I said: {LESSON}")
    assert len(distil(talk.write(path))) == 1


def test_a_candidate_is_brief_whatever_was_said(path: Path) -> None:
    talk = Lines().user("Why?").assistant(" ".join([LESSON] * 40)).assistant("x" * 9000 + " because it must not")
    assert all(len(one.text) <= LONGEST for one in distil(talk.write(path)))


def test_a_secret_makes_no_candidate(path: Path) -> None:
    talk = Lines().user(f"No, always use the token {CANARY} because the old one does not work.")
    assert distil(talk.write(path)) == []


def test_each_candidate_can_be_explained(path: Path) -> None:
    [one] = distil(Lines().user("Why?").assistant(LESSON).write(path))
    told = one.to_dict(explain=True)
    assert told["rule"] == "assistant"
    assert told["signs"]["cause:other"] > 0
    assert "signs" not in one.to_dict()


def test_the_signs_of_a_candidate_add_up_to_its_confidence(path: Path) -> None:
    talk = Lines().user("No, never commit to main, always open a pull request instead.").assistant(LESSON)
    for one in distil(talk.user(SUMMARY, isCompactSummary=True).write(path)):
        total = weights().bias + sum(one.signs.values())
        assert one.confidence == pytest.approx(1 / (1 + math.exp(-total)), abs=0.02)


@pytest.mark.parametrize(
    ("text", "role", "section", "kind"),
    [
        ("Go's regexp doesn't support backreferences.", "assistant", "", "lesson"),
        ("The debug level is read from APP_LOG_LEVEL.", "assistant", "", "fact"),
        ("Shadow branches are separate by design, so that they never touch the index.", "assistant", "", "decision"),
        ("The project rules say to update PROGRESS.md after each task.", "assistant", "", "rule"),
        ("Which store? Answer: Postgres", "answer", "", "decision"),
        ("never mind, we'll look at it later", "user", "", "fact"),
        ("never push without asking", "user", "", "rule"),
        ("I want one flag for this, not a prompt", "user", "", "preference"),
        ("always write steps_count", "user", "users", "rule"),
        ("The Windows build still fails.", "summary", "pending", "open"),
    ],
)
def test_the_kind_of_a_text(text: str, role: str, section: str, kind: str) -> None:
    assert kind_of(text, role, section) == kind


def test_the_files_that_a_text_names() -> None:
    text = "Node.js reads `/app/src/auth.ts:12`, not docs/plan.md or e.g. this; see https://x.dev/a.html and v1.2.3."
    assert files_in(text, "/app") == ("src/auth.ts", "docs/plan.md")


@pytest.mark.parametrize("text", ['{"a": 1}\n', "root:x:0:0:root:/root:/bin/bash\n"])
def test_what_is_no_transcript_is_an_error(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(InvalidInput, match="is not a transcript"):
        distil(path)
    with pytest.raises(NotFound):
        distil(path.with_name("none.jsonl"))


def test_an_empty_transcript_has_no_candidates(path: Path) -> None:
    path.write_text("")
    assert distil(path) == []


def test_code_tables_and_pasted_output_are_no_part_of_a_passage() -> None:
    text = "The port is off:\n\n$ make run\n```\nlistening on 1\nready\n```\n| a | b |\nINFO up\nUse 8080 instead."
    assert [passage.text for passage in passages(text, own=True)][-1] == "The port is off: Use 8080 instead."


def texts(text: str) -> list[str]:
    return [passage.text for passage in passages(text)]


def test_a_passage_is_one_to_three_sentences_that_say_something() -> None:
    text = "Good feedback. The cache is shared. It must be locked. Let me fix that. But the lock is slow."
    assert texts(text) == [
        "The cache is shared.",
        "The cache is shared. It must be locked.",
        "The cache is shared. It must be locked. But the lock is slow.",
        "The lock is slow.",
    ]


def test_a_passage_that_leans_on_its_heading_is_told_with_it() -> None:
    assert texts("## Shadow branches\n\nThey never touch the index, by design.") == [
        "Shadow branches: They never touch the index, by design."
    ]
    assert passages("They never touch the index, by design.")[0].leans


def test_an_item_is_told_with_a_lead_that_says_something_and_a_plan_is_not_told() -> None:
    assert texts(
        "The comment appears when:\n- `git commit` runs without `-m`\n- a session of the worktree is active"
    ) == [
        "The comment appears when: `git commit` runs without `-m`; a session of the worktree is active",
        "The comment appears when: `git commit` runs without `-m`",
        "The comment appears when: a session of the worktree is active",
    ]
    assert texts("Now I need to:\n- rename the column because it must not clash\n- run the tests again") == []


def test_what_leads_to_code_and_markup_is_left_out_and_names_stay_as_they_are() -> None:
    text = "> **go.work** is ignored by `mcp__pencil__*` tools. The right call is:\n\n```\na\nb\n```"
    assert texts(text) == ["go.work is ignored by `mcp__pencil__*` tools."]


@pytest.mark.parametrize(
    "text", ["x" * 30_000, "a b " * 9000, "`" * 9000, "- a\n" * 9000, "no " * 9000 + ".", "a.b/c" * 8000]
)
def test_texts_take_time_in_proportion(text: str) -> None:
    assert in_proportion(passages, text)


def test_the_weights_are_what_the_scorer_reads() -> None:
    saved = json.loads(WEIGHTS.read_text("utf-8"))
    assert set(saved) == {"signs", "bias", "threshold"}
    assert weights().signs == saved["signs"]
