"""`crcr resend DIR`: deliver what waits in an outbox. A letter that arrived is not sent again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relay_client.errors import RelayRefused, RelayUnreachable, UsageError
from relay_client.protocol import vocabulary as words
from relay_client.report.deliver import Courier, explain
from relay_client.report.outbox import SENT, letters
from relay_client.report.verb import PRODUCTION_RELAY, token_minter
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class ResendOptions:
    outbox: tuple[str, ...] = option("Folder of the outbox", default=(), positional=True)
    relay_url: str = option(
        "Address of the relay's callback; letters for another are refused", default=PRODUCTION_RELAY
    )
    audience: str = option("Audience of the OIDC token, as the relay wants it", default=words.AUDIENCE)


OPTIONS = (ResendOptions,)

OUTPUTS = {"delivered": "Number of callbacks that arrived"}


def run(options: ResendOptions, context: RunContext, commands: Commands) -> None:
    """Raises BadOutbox, TokenError, and RelayUnreachable or RelayRefused for the first that did not arrive."""
    if len(options.outbox) != 1:
        raise UsageError(
            "No outbox is named.", seen=f"{len(options.outbox)} folders", fix="crcr resend FOLDER"
        )
    courier = Courier(options.relay_url, token_minter(context, options.audience, commands))
    failed, delivered = None, 0
    # All of them are checked before the first is sent.
    for path, letter in list(letters(Path(options.outbox[0]), options.relay_url, options.audience)):
        sent = courier.report(letter.body, letter.start)
        commands.line(f"{path.name}: {sent.delivery} after {sent.attempts} attempt(s)")
        if sent.delivery == "delivered":
            path.replace(path.with_name(path.name + SENT))
            delivered += 1
        elif failed is None:
            failed = (RelayUnreachable if sent.delivery == "undelivered" else RelayRefused)(
                f"{path.name} did not arrive: {sent.delivery}.", seen=sent.answer, fix=explain(sent)
            )
    commands.output("delivered", str(delivered))
    if failed is not None:
        raise failed
