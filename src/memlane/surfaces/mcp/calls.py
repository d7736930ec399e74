"""A call of a tool, and its answer by the process that has the bank open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from memlane.bank import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.core.values import astuple
from memlane.surfaces.mcp import answers
from memlane.surfaces.mcp.answers import Answer
from memlane.surfaces.mcp.shared_bank import Report, SharedBank, indexes_of
from memlane.surfaces.mcp.tools import Tool

Work = Callable[[Bank], Answer]


class Call(NamedTuple):
    """A call of a tool: its arguments as the client sent them, who asks, and what he may do."""

    tool: str
    arguments: Mapping[str, Any]
    who: str
    access: Access = EVERYTHING

    def plain(self) -> dict[str, Any]:
        """The call as JSON has it: see `told`."""
        return {**self._asdict(), "access": astuple(self.access)}


def told(message: Mapping[str, Any]) -> Call:
    """The call in a message of another process."""
    return Call(message["tool"], message["arguments"], message["who"], access_in(message["access"]))


def access_in(given: list[Any]) -> Access:
    """What somebody may do, as JSON has it."""
    name, right, scopes = given
    return Access(name, right, None if scopes is None else tuple(scopes))


async def answered(
    users: SharedBank, tools: Mapping[str, Tool], call: Call, report: Report, *, beside_readers: bool
) -> Answer:
    """The answer to a call of a tool that there is. `beside_readers`: others read the index that this one tells."""
    tool = tools[call.tool]
    try:
        arguments = tool.checked(call.arguments)
        shared = users.seen_by(call.access)
        if tool.reads_index:
            await shared.update_index(report)
        work: Work = partial(_of_tool, tool, arguments, call, tools)
        if not tool.updates_index or not beside_readers:
            return await shared.run(work, outdates_index=tool.outdates_index)
        with shared.tells():
            return await shared.run(partial(_told_to_index, shared, work))
    except Exception as error:
        return answers.failure(error, tool.name, tools)


def _of_tool(tool: Tool, arguments: Mapping[str, Any], call: Call, tools: Mapping[str, Tool], bank: Bank) -> Answer:
    return answers.answer(bank, tool, arguments, call.who, tools, call.access)


def _told_to_index(shared: SharedBank, work: Work, bank: Bank) -> Answer:
    """The answer of a tool that tells the index what it writes: else each reader would have to find it out.

    Where it could not, all of them are told to look.
    """
    try:
        indexes = indexes_of(bank)
        missed = [index.missed for index in indexes]
    except Exception:  # what is wrong with an index, the next search says; the write goes on
        indexes, missed = [], [1]
    try:
        return work(bank)
    finally:
        if [index.missed for index in indexes] != missed:
            shared.outdate()
