"""What the lines of each client's transcript say. The lines have the shapes that the clients write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memlane.capture.transcripts import conversation, entries
from memlane.capture.transcripts.entry import Entry, Part

WHEN = "2025-01-15T10:30:00.123Z"


def read(value: Any, kind: str | None = None) -> list[Entry | None]:
    return [entry for _, entry in entries(value, kind)]


def claude(type: str, content: Any, **keys: Any) -> dict[str, Any]:
    message = {"role": type, "content": content, **keys.pop("message", {})}
    return {
        "type": type,
        "timestamp": WHEN,
        "cwd": "/app",
        "sessionId": "s1",
        "isSidechain": False,
        "message": message,
        **keys,
    }


# -- Claude Code


def test_claude_code_text_blocks_are_joined_and_tools_and_thinking_left_out() -> None:
    """S001-49."""
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "One."},
        {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/app/src/a.py"}},
        {"type": "text", "text": "Two."},
    ]
    line = claude("assistant", content, message={"id": "msg_1", "model": "claude-x"})
    expected = Entry("One.\nTwo.", "msg_1", WHEN, files=("/app/src/a.py",), cwd="/app", thread="s1")
    assert read(line) == [expected]


@pytest.mark.parametrize(
    ("name", "given", "files"),
    [
        ("Write", {"file_path": "/app/a.py"}, ("/app/a.py",)),
        ("MultiEdit", {"file_path": "/app/a.py"}, ("/app/a.py",)),
        ("NotebookEdit", {"notebook_path": "/app/a.ipynb"}, ("/app/a.ipynb",)),
        ("Read", {"file_path": "/app/a.py"}, ()),
        ("Edit", {"file_path": 7}, ()),
        ("Edit", "broken", ()),
    ],
)
def test_claude_code_files_are_those_that_a_tool_writes(name: str, given: Any, files: tuple[str, ...]) -> None:
    (entry,) = read(claude("assistant", [{"type": "tool_use", "name": name, "input": given}]))
    assert entry is not None
    assert entry.files == files


@pytest.mark.parametrize(
    ("keys", "skip"),
    [
        ({"isSidechain": True}, "sidechain"),
        ({"isApiErrorMessage": True}, "error"),
        ({"message": {"model": "<synthetic>"}}, "error"),
        ({"isMeta": True}, "meta"),
        ({"isCompactSummary": True}, "meta"),
    ],
)
def test_claude_code_lines_that_are_not_said_to_the_user_say_why(keys: dict[str, Any], skip: str) -> None:
    (entry,) = read(claude("assistant", [{"type": "text", "text": "x"}], **keys))
    assert entry is not None
    assert entry.skip == skip


@pytest.mark.parametrize(
    ("content", "keys", "asked"),
    [
        ("Fix it", {}, True),
        ([{"type": "text", "text": "Fix it"}], {}, True),
        ([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}], {}, False),
        ("Caveat: …", {"isMeta": True}, False),
        ("This session is being continued …", {"isCompactSummary": True}, False),
        ("Look around", {"isSidechain": True}, False),
    ],
)
def test_claude_code_a_turn_begins_when_the_user_speaks(content: Any, keys: dict[str, Any], asked: bool) -> None:
    (entry,) = read(claude("user", content, **keys))
    assert entry is not None
    assert (entry.asked, entry.text) == (asked, "")


def test_claude_code_other_lines_say_nothing() -> None:
    for line in (
        {"type": "summary", "summary": "Two\nlines", "leafUuid": "u"},
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "hook_additional_context", "content": ["x"]}},
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s1", "content": "Two\nlines"},
        {"type": "assistant", "message": "broken"},
    ):
        assert read(line) == [Entry()]


# -- Codex


def codex(kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": WHEN, "ordinal": 1, "type": kind, "payload": payload}


def test_codex_messages_and_session() -> None:
    said = [{"type": "output_text", "text": "One.\nTwo."}]
    assert read(codex("session_meta", id="r1", cwd="/app", source="cli")) == [Entry(cwd="/app", thread="r1")]
    assert read(codex("response_item", type="message", role="assistant", content=said)) == [
        Entry("One.\nTwo.", "", WHEN)
    ]
    asked = codex("response_item", type="message", role="user", content=[{"type": "input_text", "text": "Fix it"}])
    assert read(asked) == [Entry(asked=True)]


def test_codex_what_is_repeated_for_the_screen_and_what_was_thought_says_nothing() -> None:
    for line in (
        codex("event_msg", type="agent_message", message="One.\nTwo."),
        codex("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "One.\nTwo."}]),
        codex("response_item", type="message", role="developer", content=[{"type": "input_text", "text": "x\ny"}]),
        codex("compacted", message="One.\nTwo."),
    ):
        assert read(line) == [Entry()]


def test_codex_a_subagents_rollout_is_marked_as_a_whole() -> None:
    (entry,) = read(codex("session_meta", id="r2", source={"subagent": "review"}))
    assert entry == Entry(thread="r2", aside=True)


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH},
        {"type": "function_call", "name": "apply_patch", "arguments": json.dumps({"input": PATCH})},
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["apply_patch", PATCH]})},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["bash", "-lc", f"apply_patch '{PATCH}"]}},
    ],
)
def test_codex_files_are_those_of_a_patch(payload: dict[str, Any]) -> None:
    assert read(codex("response_item", **payload)) == [Entry(files=("src/a.py", "src/b.py"))]


def test_codex_calls_that_are_no_patch_change_nothing() -> None:
    for arguments in ('{"command": ["ls"]}', '{"broken', "[" * 100_000):
        assert read(codex("response_item", type="function_call", arguments=arguments)) == [Entry()]


# -- Gemini


def test_gemini_chat() -> None:
    header = {"sessionId": "g1", "projectHash": "abc", "startTime": WHEN, "lastUpdated": WHEN, "kind": "main"}
    call = {"id": "c", "name": "replace", "args": {"file_path": "/app/a.py"}, "status": "success"}
    said = {
        "id": "m2",
        "timestamp": WHEN,
        "type": "gemini",
        "content": [{"text": "hm", "thought": True}, {"text": "One.\nTwo."}],
        "thoughts": [{"subject": "x", "description": "y"}],
        "toolCalls": [call],
    }
    user = {"id": "m1", "timestamp": WHEN, "type": "user", "content": "Fix it"}
    assert read(header) == [Entry(thread="g1")]
    assert read(user) == [Entry(asked=True)]
    assert read({**user, "content": [{"functionResponse": {"id": "c", "response": {"output": "ok"}}}]}) == [Entry()]
    assert read(said) == [Entry("One.\nTwo.", "m2", WHEN, files=("/app/a.py",))]
    assert read({"id": "m3", "timestamp": WHEN, "type": "info", "content": "Two\nlines"}) == [Entry()]
    assert read({**header, "messages": [user, said]}) == [*read(header), *read(user), *read(said)]
    assert read({**header, "kind": "subagent"}) == [Entry(thread="g1", aside=True)]


# -- opencode


def opencode(role: str, *parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    told = {"id": "m1", "sessionID": "ses_1", "role": role, "time": {"created": 1736937000123}, **info}
    return {"info": told, "parts": list(parts)}


def test_opencode_says_text_and_calls_tools() -> None:
    tool = {
        "type": "tool",
        "tool": "edit",
        "callID": "c1",
        "state": {"status": "error", "input": {"filePath": "/app/a.py"}, "error": "No such file."},
    }
    texts = [{"type": "text", "text": "One."}, {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Two."}]
    line = opencode("assistant", {"type": "step-start"}, *texts, tool, path={"cwd": "/app"})
    ((_, entry, parts),) = conversation(line)
    assert entry == Entry(
        "One.\nTwo.", "m1", "2025-01-15T10:30:00.123000Z", files=("/app/a.py",), cwd="/app", thread="ses_1"
    )
    assert parts == [
        Part("assistant", "One.\nTwo."),
        Part("call", "", "c1", "edit", {"filePath": "/app/a.py"}),
        Part("result", "No such file.", "c1", failed=True),
    ]


def test_a_patch_in_opencode_names_its_files() -> None:
    told = {"patchText": "*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n*** End Patch"}
    [entry] = read(opencode("assistant", {"type": "tool", "tool": "apply_patch", "state": {"input": told}}))
    assert entry is not None
    assert entry.files == ("a.py", "b.py")


def test_opencode_marks_what_the_user_did_not_say_and_what_it_summed_up() -> None:
    document = {
        "info": {"id": "ses_1", "directory": "/app", "parentID": "ses_0"},
        "messages": [
            opencode("user", {"type": "text", "text": "Go on.", "synthetic": True}, summary={"diffs": []}),
            opencode("user", {"type": "text", "text": "Why?"}),
            opencode("assistant", {"type": "text", "text": "What we did."}, summary=True),
            {"info": {"role": "user"}, "parts": "x"},
        ],
    }
    at = "2025-01-15T10:30:00.123000Z"
    assert read(document) == [
        Entry(cwd="/app", thread="ses_1", aside=True),
        Entry(at=at, thread="ses_1"),
        Entry(at=at, thread="ses_1", asked=True),
        Entry("What we did.", "m1", at, "meta", thread="ses_1"),
        Entry(),
    ]
    said = [part for _, _, parts in conversation(document) for part in parts if part.text]
    assert said == [Part("user", "Why?"), Part("summary", "What we did.")]


# -- Windsurf


def test_windsurf_steps() -> None:
    asked = {"type": "user_input", "status": "done", "user_input": {"user_response": "Fix it"}}
    said = {"type": "planner_response", "status": "done", "planner_response": {"response": "One.\nTwo."}}
    changed = {"type": "code_action", "status": "done", "code_action": {"path": "/app/a.py", "new_content": "a"}}
    assert [*read(asked), *read(said), *read(changed)] == [
        Entry(asked=True), Entry("One.\nTwo."), Entry(files=("/app/a.py",)),
    ]  # fmt: skip
    parts = [part for step in (asked, said, changed) for _, _, found in conversation(step) for part in found]
    assert [(part.role, part.text) for part in parts] == [("user", "Fix it"), ("assistant", "One.\nTwo.")]
    assert read({"type": "user_input", "user_input": "Fix it"}) == [None]


# -- plain messages


def test_plain_messages_one_by_one_and_in_documents() -> None:
    user = {"role": "user", "content": "Fix it", "timestamp": WHEN}
    said = {"role": "assistant", "content": [{"type": "text", "text": "One.\nTwo."}], "created_at": 1736937000}
    expected = [Entry(asked=True), Entry("One.\nTwo.", "", 1736937000)]
    assert [*read(user), *read(said)] == expected
    assert read([user, said]) == expected
    older = {"transcript": [user, said], "session_id": "s1", "working_directory": "/app"}
    assert read(older) == [Entry(cwd="/app", thread="s1"), *expected]


def test_other_roles_say_nothing() -> None:
    assert read({"role": "tool", "content": "Two\nlines", "timestamp": WHEN}) == [Entry()]
    assert read({"role": "system", "content": "Two\nlines", "timestamp": WHEN}) == [Entry()]


# -- what nobody knows


def test_a_line_of_its_own_is_no_document() -> None:
    """A line that logs a request or a tool's answer may hold messages: they were not said there."""
    said = {"role": "assistant", "content": "An answer\nfrom before.", "timestamp": "2025-01-15T10:00:00Z"}
    for line in ({"type": "api-request", "messages": [said]}, {"type": "user", "message": {}, "transcript": [said]}):
        assert [entry.text if entry else "" for _, entry in entries(line)] == [""]


@pytest.mark.parametrize("value", [{}, {"silly": "this"}, {"type": 7}, {"$set": 7}, {"payload": "x", "type": "y"}])
def test_an_object_that_no_format_knows_has_no_entry(value: dict[str, Any]) -> None:
    assert read(value) == [None]


@pytest.mark.parametrize("value", [42, "massive error", None, [1], True])
def test_what_is_no_object_is_not_read_at_all(value: Any) -> None:
    assert read(value) == []


def test_a_named_format_reads_only_its_own_lines() -> None:
    assert read({"role": "assistant", "content": "x"}, "codex") == [None]


@pytest.mark.parametrize("junk", [None, 7, [], ["wow error", 7, None], {"a": 1}, [{"type": "text", "text": 7}]])
def test_content_of_the_wrong_type_says_nothing(junk: Any) -> None:
    lines = (
        claude("assistant", junk, message={"id": 7}),
        codex("response_item", type="message", role="assistant", content=junk),
        {"type": "gemini", "content": junk, "toolCalls": junk, "id": junk},
        {"role": "assistant", "content": junk},
    )
    for line in lines:
        (entry,) = read(line)
        assert entry is not None
        assert entry.text in ("", "wow error")
