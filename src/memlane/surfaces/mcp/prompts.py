"""The prompts that people choose by hand, and the completion of their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from mcp.types import Completion, Prompt, PromptArgument

from memlane.bank import Bank

MAX_VALUES = 100  # in one completion, by the protocol
WAIT = 0.5  # seconds for a completion to look for new memories: nobody waits longer while typing

Text = Callable[[Bank, dict[str, str]], str]


class Template(NamedTuple):
    """A prompt and the function that makes its text from the bank and the arguments."""

    prompt: Prompt
    text: Text
    reads_index: bool = False


def _recall(bank: Bank, arguments: dict[str, str]) -> str:
    topic = arguments["topic"]
    block = bank.context(topic, budget=2000)
    if not block:
        return f"I asked the project's memory about {topic!r}. It holds nothing on that. Say so, briefly."
    return f"This is what the project's memory holds about {topic!r}. Use it; say what is missing.\n\n{block}"


def _remember(bank: Bank, arguments: dict[str, str]) -> str:
    tags = f" Use these tags: {arguments['tags']}." if arguments.get("tags") else ""
    return (
        "Store this in the project's memory so that a later session understands it without this conversation. Call "
        "`recall` first: correct or extend what is there (update_memory, append_memory, or remember with the same "
        f"topic_id) rather than storing it twice. Leave out secrets and personal data.{tags}\n\n{arguments['what']}"
    )


def _wrap_up(bank: Bank, arguments: dict[str, str]) -> str:
    return (
        "This session is ending. Go through it and store what a later session needs, and only that:\n"
        "1. Decisions and why they were made; conventions; what the user prefers. One `remember` each.\n"
        "2. What was learnt the hard way: the cause of a bug, and its fix.\n"
        "3. What is unfinished: one `remember` with topic_id `open_work`, which replaces the former one.\n"
        "4. Memories that turned out wrong: update or delete them.\n"
        "Call `recall` before storing, so that nothing is stored twice. No secrets, no personal data, nothing that the "
        "code or git already says. Then list what you stored."
    )


def _template(
    name: str, description: str, text: Text, *arguments: PromptArgument, reads_index: bool = False
) -> Template:
    title = name.replace("-", " ").capitalize()
    prompt = Prompt(name=name, title=title, description=description, arguments=list(arguments))
    return Template(prompt, text, reads_index)


_TEMPLATES = (
    _template(
        "recall",
        "Bring what the memory holds about a topic into the conversation.",
        _recall,
        PromptArgument(name="topic", description="A task, a question, a file or a tag.", required=True),
        reads_index=True,
    ),
    _template(
        "remember",
        "Have something stored well: self-contained, once, without secrets.",
        _remember,
        PromptArgument(name="what", description="What is to be remembered.", required=True),
        PromptArgument(name="tags", description="Tags, with commas.", required=False),
    ),
    _template("wrap-up", "At the end of a session: store what the next one needs.", _wrap_up),
)
TEMPLATES = {template.prompt.name: template for template in _TEMPLATES}


def ids(bank: Bank, typed: str) -> Completion:
    """Ids of memories that begin with what was typed; after those, ids that contain it."""
    rows = bank.index.ask(lambda: bank.index.rows("SELECT id FROM memories ORDER BY n"), wait=WAIT)
    return _matching(typed, [id for (id,) in rows])


def tags(bank: Bank, typed: str) -> Completion:
    """Completions of the last tag in a list with commas, the most used first."""
    before, comma, last = typed.rpartition(",")
    used = bank.index.ask(lambda: [tag for _, memory in bank.index.every_memory() for tag in memory.tags], wait=WAIT)
    completion = _matching(last.strip(), [tag for tag, _ in Counter(used).most_common()])
    lead = f"{before}, " if comma else ""
    return completion.model_copy(update={"values": [lead + tag for tag in completion.values]})


def _matching(typed: str, words: list[str]) -> Completion:
    """The words that begin with what was typed, then those that contain it; upper and lower case count the same."""
    start = typed.lower()
    matches = [word for word in words if start in word.lower()]
    matches.sort(key=lambda word: not word.lower().startswith(start))
    return Completion(values=matches[:MAX_VALUES], total=len(matches), has_more=len(matches) > MAX_VALUES)
