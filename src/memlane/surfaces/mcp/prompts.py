"""The prompts that people choose by hand, and what completes their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mcp.types import Completion, Prompt, PromptArgument

from memlane.bank import Bank

MOST = 100  # values in one completion, by the protocol
WAIT = 0.5  # seconds for a completion to look for what is new: nobody waits longer while typing


class Written(NamedTuple):
    """A prompt and how its text is made of the bank and its arguments."""

    prompt: Prompt
    text: Callable[[Bank, dict[str, str]], str]
    indexed: bool = False


def _recall(bank: Bank, given: dict[str, str]) -> str:
    block = bank.context(given["topic"], budget=2000)
    if not block:
        return f"I asked the project's memory about {given['topic']!r}. It holds nothing on that. Say so, briefly."
    return f"This is what the project's memory holds about {given['topic']!r}. Use it; say what is missing.\n\n{block}"


def _remember(bank: Bank, given: dict[str, str]) -> str:
    tags = f" Use these tags: {given['tags']}." if given.get("tags") else ""
    return (
        "Store this in the project's memory so that a later session understands it without this conversation. Call "
        "`recall` first: correct or extend what is there (update_memory, append_memory, or remember with the same "
        f"topic_id) rather than storing it twice. Leave out secrets and personal data.{tags}\n\n{given['what']}"
    )


def _wrap_up(bank: Bank, given: dict[str, str]) -> str:
    return (
        "This session is ending. Go through it and store what a later session needs, and only that:\n"
        "1. Decisions and why they were made; conventions; what the user prefers. One `remember` each.\n"
        "2. What was learnt the hard way: the cause of a bug, and its fix.\n"
        "3. What is unfinished: one `remember` with topic_id `open_work`, which replaces the former one.\n"
        "4. Memories that turned out wrong: update or delete them.\n"
        "Call `recall` before storing, so that nothing is stored twice. No secrets, no personal data, nothing that the "
        "code or git already says. Then list what you stored."
    )


PROMPTS = (
    Written(
        Prompt(
            name="recall",
            title="Recall",
            description="Bring what the memory holds about a topic into the conversation.",
            arguments=[PromptArgument(name="topic", description="A task, a question, a file or a tag.", required=True)],
        ),
        _recall,
        indexed=True,
    ),
    Written(
        Prompt(
            name="remember",
            title="Remember",
            description="Have something stored well: self-contained, once, without secrets.",
            arguments=[
                PromptArgument(name="what", description="What is to be remembered.", required=True),
                PromptArgument(name="tags", description="Tags, with commas.", required=False),
            ],
        ),
        _remember,
    ),
    Written(
        Prompt(
            name="wrap-up",
            title="Wrap up",
            description="At the end of a session: store what the next one needs.",
            arguments=[],
        ),
        _wrap_up,
    ),
)


def ids(bank: Bank, typed: str) -> Completion:
    """Ids of memories that begin with what was typed; after those, ids that contain it."""
    return _matching(typed, bank.index.ask(lambda: [memory.id for _, memory in bank.index.every_memory()], wait=WAIT))


def tags(bank: Bank, typed: str) -> Completion:
    """Tags for the last of several words with commas, the most used first."""
    from collections import Counter

    before, comma, last = typed.rpartition(",")
    known = bank.index.ask(lambda: [tag for _, memory in bank.index.every_memory() for tag in memory.tags], wait=WAIT)
    found = _matching(last.strip(), [tag for tag, _ in Counter(known).most_common()])
    return found.model_copy(update={"values": [f"{before}{comma}{' ' if comma else ''}{tag}" for tag in found.values]})


def _matching(typed: str, words: list[str]) -> Completion:
    low = typed.lower()
    first = [word for word in words if word.lower().startswith(low)]
    found = first + [word for word in words if low in word.lower() and not word.lower().startswith(low)]
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)
