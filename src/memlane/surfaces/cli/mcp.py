"""`memlane mcp`: serve the bank to agents."""

from __future__ import annotations

import os
import stat
import sys

import click
from click.core import ParameterSource

from memlane import config
from memlane.config.places import mcp_token
from memlane.config.settings import TOOLSETS
from memlane.core.errors import ConfigError
from memlane.disk import children
from memlane.surfaces.cli.output import say

_MAX_TOKEN = 4096  # bytes


@click.command()
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Anything but loopback needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 is any free one.")
@click.option(
    "--token-file", type=click.Path(dir_okay=False), help="A file that holds the token; else MEMLANE_MCP_TOKEN."
)
@click.option(
    "--readers",
    type=click.IntRange(0, 64),
    help="With --http: processes that answer reads, started when they are needed. [default: one a core, at most 4]",
)
@click.option("--allow-host", "names", multiple=True, help="A further name by which clients may call the server.")
@click.option("--public-url", default="", help="How clients reach it through a proxy: https://mem.example.com")
@click.option("--oauth", is_flag=True, help="With --http: people let programs in by a code that is printed here.")
@click.option(
    "--metrics",
    type=click.Choice(("local", "open")),
    default="local",
    show_default=True,
    help="With --http: who may read /metrics without a token, programs on this machine or everybody.",
)
@click.option(
    "--toolset",
    "more",
    multiple=True,
    type=click.Choice(TOOLSETS),
    help="Further tools, besides those of [mcp] toolsets; may be repeated.",
)
@click.pass_context
def mcp(
    ctx: click.Context,
    http: bool,
    host: str,
    port: int,
    token_file: str | None,
    readers: int | None,
    names: tuple[str, ...],
    public_url: str,
    oauth: bool,
    metrics: str,
    more: tuple[str, ...],
) -> None:
    """Serve the bank to agents by the Model Context Protocol.

    A client starts it by itself, in the project's folder or as `memlane --bank DIR mcp`. Without a bank it starts,
    too; its tools then say so, until `memlane init` was run.

    \b
    $ claude mcp add memlane -- memlane mcp
    $ memlane mcp --http --port 8765
    $ memlane mcp --http --oauth --public-url https://mem.example.com
    """
    if not http and (given := _only_over_http(ctx)):
        raise click.UsageError(f"{given} goes with --http.")
    from memlane.surfaces.mcp.server import build_server
    from memlane.surfaces.mcp.shared_bank import SharedBank

    folder, flags = ctx.find_root().obj
    if readers is None:
        readers = min(children.cores(), 4)
    bank = SharedBank(folder, flags)
    server = build_server(folder, flags, more=more, readers=readers if http else 0, bank=bank)
    if not http:
        from memlane.surfaces.mcp import stdio
        from memlane.surfaces.resident import command

        if sys.stdin.isatty():
            say("memlane: waiting for an MCP client on standard input; Ctrl-C ends it")
        stdio.serve(server, hooks=lambda: command(folder, flags))
        return
    from memlane.surfaces.mcp import http as web

    web.serve(
        server,
        bank,
        config.load(folder, flags),
        host,
        port,
        _token(token_file),
        names,
        public_url=public_url,
        with_oauth=oauth,
        open_metrics=metrics == "open",
    )


def _only_over_http(ctx: click.Context) -> str:
    """An option of the command line that means nothing to a client on standard input; "" when none was given."""
    typed = (one for one in ctx.command.params if one.name not in ("http", "more"))
    given = (one.opts[0] for one in typed if ctx.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE)
    return next(given, "")


def _token(file: str | None) -> str | None:
    """The token of the file or the environment. It is never an argument: others can see those."""
    if file is None:
        return mcp_token()
    try:
        fd = os.open(os.path.expanduser(file), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as opened:
            info = os.fstat(fd)
            data = opened.read(_MAX_TOKEN + 1) if stat.S_ISREG(info.st_mode) else None
        token = (data or b"").decode().strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigError("The token file cannot be read.", hint="Check its path and permissions.") from None
    if data is None:
        raise ConfigError("The token file is not a file.", hint="Write the token into a plain file.")
    if info.st_mode & 0o077 or info.st_uid not in (os.geteuid(), 0):
        raise ConfigError(
            "The token file is open to other users of this machine, who could use the server in your name.",
            hint="Make a new token, and let nobody else read it: chmod 600.",
        )
    if len(data) > _MAX_TOKEN:
        raise ConfigError("The token file is too long for a token.", hint="Write the token into it, and nothing else.")
    if not token:
        raise ConfigError("The token file is empty.", hint="Write the token into it.")
    return token
