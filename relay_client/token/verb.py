"""`crcr token`: an OIDC token as a masked output, for users' own calls. It lives five minutes."""

from __future__ import annotations

from dataclasses import dataclass

from relay_client.errors import UsageError
from relay_client.protocol import vocabulary as words
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option
from relay_client.token.mint import mint_token


@dataclass(frozen=True)
class TokenOptions:
    audience: str = option("Who the token is for", default=words.AUDIENCE)
    timeout_seconds: float = option("How long to wait for it, in all", default=30.0)


OPTIONS = (TokenOptions,)

OUTPUTS = {"token": "The OIDC token, masked in the log. Use it at once, in this job"}


def run(options: TokenOptions, context: RunContext, commands: Commands) -> None:
    """Raises TokenError; UsageError off GitHub, where an output would print the secret."""
    if not context.on_github:
        raise UsageError(
            "A token is handed over only inside a GitHub Actions job.",
            seen="GITHUB_ACTIONS is not true",
            fix="run `crcr token` in a job with `permissions: { id-token: write }`",
        )
    token = mint_token(context.environment, options.audience, options.timeout_seconds)
    commands.mask(token)
    commands.output("token", token)
    commands.line(f"A token for {options.audience} is in the output `token`; it lives five minutes.")
