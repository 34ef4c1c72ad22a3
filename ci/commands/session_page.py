"""`kernelgate session page`."""

from __future__ import annotations

from pathlib import Path

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.commands.session import as_json_option, checkout, named, session


@session.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the page into this HTML file.")
@click.option("--serve", is_flag=True, help="Show it live to browsers of this machine, until Ctrl-C.")
@click.option("--port", type=click.IntRange(0, 65535), default=8756, show_default=True, help="For --serve; 0: any.")
@named
@as_json_option
def page(output: Path | None, serve: bool, port: int, name: str | None, as_json: bool) -> None:
    """Show a session as a page: gates, metrics against targets, tries, and a calculator of what fits on a GPU.

    Give -o or --serve. --serve answers on 127.0.0.1 alone, and needs the extra `page`.

    Exit codes: 0 written, or ended by Ctrl-C, 3 could not run, 64 usage.
    """
    from kernelgate.bench.core import files
    from kernelgate.ci.lab import folder, session_page
    from kernelgate.ci.lab import page as write
    from kernelgate.ci.lab.session_answer import SessionPage
    from kernelgate.ci.policy import policy

    if serve == (output is not None):
        raise UsageError("give one of -o FILE, which writes the page, and --serve, which shows it live")
    root, rules = checkout(), policy.load()
    shown = folder.named(root, name)
    at = shown.folder
    if output:
        files.try_file(output)
        files.write(output, write.page(session_page.state(at, rules), session_page.known(root)))
        made = SessionPage(session=shown.name, file=str(output), address=None)
        click.echo(made.shown() if as_json else output)
        return
    try:
        from kernelgate.ci.lab import page_server as server
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise KernelgateError("--serve needs uvicorn, which is not installed: pip install 'kernelgate[page]'") from None
    known = session_page.known(root)
    served = server.Served(
        page=lambda: write.page(session_page.state(at, rules), known, live=True),
        state_json=lambda: write.state_json(session_page.state(at, rules)),
    )

    def say(address: str) -> None:
        made = SessionPage(session=shown.name, file=None, address=address)
        click.echo(made.shown() if as_json else f"{address} shows the session; Ctrl-C ends it")

    server.serve(port, served, say)
