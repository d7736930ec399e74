"""What a client is offered whose token is limited to scopes, and what it is told to use in the place of the rest.

The bank itself refuses what such a token may not do (`memlane.bank.limited`). Here it is only kept from being offered,
so that an agent does not try. A tool that is new is not offered until somebody has thought about it.
"""

from __future__ import annotations

from memlane import gate
from memlane.core.access import Access
from memlane.lanes.limited import NotAllowed
from memlane.surfaces.mcp.tools import Tool

IN_SCOPES = frozenset(
    {
        "remember", "recall", "create_memory", "read_memory", "update_memory", "append_memory", "delete_memory",
        "search_memories", "search_linked_memories", "get_memory_stats", "suggest_memory_merges", "list_memories",
        "edit_memory", "restore_memory", "read_graph", "search_nodes", "open_nodes", "get_memory", "remove_memory",
    }
)  # fmt: skip
_INSTEAD = {
    "read": "`recall`, `search_memories` and `list_memories` show all that it may see, of every lane.",
    "write": "`remember` stores it as a note, without lane, tier and topic_id.",
    "remove": "`edit_memory`, `update_memory` and `delete_memory` change the notes that it may see.",
}
_WHOLE = "State that is to replace"  # where the instructions begin to speak of what such a token cannot do
_AGAIN = "Longer Markdown:"  # and where they end to
_STORING = ("Store as you go", "Never store")  # the paragraphs for whoever may write
_CHANGING = (  # what is for whoever may remove, and what is for the others
    ("Correct with `edit_memory` rather than store the same thing twice.", "`append_memory` adds to what is there."),
    (": check it, and correct or delete what is wrong.", ": check it."),
)


def is_offered(tool: Tool, access: Access) -> bool:
    return access.may(tool.right) and (access.scopes is None or tool.name in IN_SCOPES)


def refusal(tool: Tool, access: Access) -> NotAllowed | None:
    """Why a tool is not for whoever has this access, and which one is; None where it may be called."""
    if access.scopes is None or tool.name in IN_SCOPES:
        return None
    return NotAllowed(f"{tool.name} is not for a token that is limited to scopes.", hint=_INSTEAD[tool.right])


def instructions(whole: str, access: Access) -> str:
    """The server's instructions for whoever has this access: of no tool that they are not offered."""
    if access.scopes is not None:
        before, _, rest = whole.partition(_WHOLE)
        own = (
            "What you store is a note in one of your scopes, the first that is a whole name where you give no `scope`; "
            "leave out lane, tier and topic_id. "
        )
        whole = f"{before}{own}{_AGAIN}{rest.partition(_AGAIN)[2]}"
    paragraphs = whole.split("\n\n")
    if access.scopes is not None:
        names = ", ".join(map(gate.shown, access.scopes))
        paragraphs[1] += f" You see memories of these scopes alone: {names}."
    if not access.may("write"):
        paragraphs = [each for each in paragraphs if not each.startswith(_STORING)]
    said = "\n\n".join(paragraphs)
    for whoever_may, others in () if access.may("remove") else _CHANGING:
        said = said.replace(whoever_may, others)
    return said
