"""An export of Claude.ai: conversations.json, alone or in its folder beside memories.json and projects.json.

    conversations.json  [{"uuid": "…", "name": "Bread", "created_at": "…",
                          "chat_messages": [{"sender": "human", "text": "Hi", "content": [{"type": "text", …}]}]}]
    memories.json       [{"conversations_memory": "**Work** …", "project_memories": {"<uuid>": "…"}}]
    projects.json       [{"uuid": "…", "name": "Shop", "prompt_template": "…", "docs": [{"filename": …, "content": …}]}]

What Claude remembers of its user, and of a project, becomes a private note, too; so do a project's instructions and its
documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from memlane import gate
from memlane.core.dates import moment
from memlane.core.model import Draft, Problem
from memlane.exchange.importers import conversations
from memlane.exchange.importers.folder import changed, safe_name
from memlane.exchange.importers.item import Found, Item

_WHO = {"human": "You", "assistant": "Claude"}


def find(path: Path) -> Path | None:
    """The path, if it is an export or has one."""
    return path if conversations.exported(path, "chat_messages") else None


def read(path: Path, skip: Collection[str] = ()) -> Iterator[Found]:
    projects: dict[str, str] = {}  # names by id
    for project in _listed(path / "projects.json", "project"):
        if isinstance(project, Problem):
            yield project
        else:
            projects[str(project.get("uuid"))] = str(project.get("name") or "project")
            yield from _project(project)
    for memory in _listed(path / "memories.json", "memory"):
        if isinstance(memory, Problem):
            yield memory
        else:
            yield from _memories(memory, projects, path / "memories.json")
    for file in conversations.exported(path, "chat_messages"):
        for number, part in enumerate(conversations.objects(file, "conversation"), 1):
            if isinstance(part, Problem):
                yield part
            elif not isinstance(part.get("uuid"), str) or not isinstance(part.get("chat_messages"), list):
                yield Problem(file, f"conversation {number} has no id or no messages")
            else:
                dates = (part.get("created_at"), part.get("updated_at"))
                turns = map(_said, part["chat_messages"])
                yield conversations.found("claude-ai", part["uuid"], part.get("name"), turns, *dates)


def _listed(path: Path, what: str) -> Iterator[dict[str, Any] | Problem]:
    return conversations.objects(path, what) if path.is_file() else iter(())


def _said(message: Any) -> tuple[str, str]:
    """Who said what; ("", "") for what is no message. What was thought and what tools were given is left out."""
    if not isinstance(message, dict) or message.get("sender") not in _WHO:
        return "", ""
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    parts = [part["text"] for part in listed if isinstance(part, dict) and isinstance(part.get("text"), str)]
    text = "\n\n".join(parts) or message.get("text")
    return _WHO[message["sender"]], text if isinstance(text, str) else ""


def _project(project: dict[str, Any]) -> Iterator[Item]:
    name, id = str(project.get("name") or "project"), str(project.get("uuid"))
    if isinstance(told := project.get("prompt_template"), str) and told.strip():
        yield _item(f"{id}/instructions", f"{name}: instructions", told, f"{name}/instructions", project)
    docs = project.get("docs")
    for number, doc in enumerate(docs if isinstance(docs, list) else (), 1):
        if isinstance(doc, dict) and isinstance(text := doc.get("content"), str) and text.strip():
            file = str(doc.get("filename") or f"document {number}")
            yield _item(f"{id}/{doc.get('uuid') or file}", f"{name}: {file}", text, f"{name}/{Path(file).stem}", doc)


def _memories(memory: dict[str, Any], projects: dict[str, str], file: Path) -> Iterator[Item]:
    of_projects = memory.get("project_memories")
    told = {"": memory.get("conversations_memory"), **(of_projects if isinstance(of_projects, dict) else {})}
    for id, text in told.items():
        if isinstance(text, str) and text.strip():
            name = projects.get(id, "project") if id else ""
            title = f"What Claude remembers of {name}" if id else "What Claude remembers of you"
            yield _item(f"memory/{id or 'user'}", title, text, f"{name}/memory" if id else "memory", {}, file)


def _item(key: str, title: str, text: str, name: str, source: dict[str, Any], file: Path | None = None) -> Item:
    created = moment(source.get("created_at")) or (changed(str(file)) if file else None)
    body = gate.redacted(text.strip()) + "\n"
    draft = Draft(body, gate.redacted(title), ("claude-ai",), "fact", created_at=created, fields={"private": True})
    return Item(key, draft, safe_name(f"claude-ai/{name}"))
