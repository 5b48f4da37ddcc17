"""Serves the bank as the command line says: transport, tokens, principals, telemetry."""

from __future__ import annotations

import contextlib
from contextlib import AsyncExitStack
from pathlib import Path

import click

from server.cli.ports import ServeRequest
from server.execution.consent import NoConsent
from server.principals import open_bank_of
from server.settings import Settings
from server.surface import (
    LOCAL,
    Access,
    AddressUnusable,
    BankPort,
    MachineToken,
    Principal,
    serve_http,
    serve_stdio,
    token_file,
)
from server.telemetry import open_telemetry
from server.wiring import open_bank

__all__ = ["serve"]


async def serve(settings: Settings, request: ServeRequest) -> None:
    """Offer the bank to MCP clients until they are gone.

    Raises:
        UsageError: it cannot be served that way; says why.
    """
    with open_telemetry(request.telemetry, settings.environment, content=request.content):
        async with AsyncExitStack() as stack:
            opened = open_bank(settings, consent=NoConsent(), publish=request.options.publish)
            bank = await stack.enter_async_context(opened)
            bank.refresh_published()
            if request.address is None:
                await serve_stdio(bank, request.options)
                return
            host, port = request.address
            access = await _access(settings, request, bank, stack)
            try:
                await serve_http(bank, host, port, _say_where, request.options, access)
            except AddressUnusable as error:
                raise click.UsageError(str(error)) from error


async def _access(settings: Settings, request: ServeRequest, bank: BankPort, stack: AsyncExitStack) -> Access:
    if request.issuer is not None:
        import httpx2

        from server.surface.jwt_tokens import JwtTokens

        client = await stack.enter_async_context(httpx2.AsyncClient(follow_redirects=False))
        resource = request.resource or _own_address(request)

        def bank_of(who: Principal) -> contextlib.AbstractAsyncContextManager[BankPort]:
            return open_bank_of(settings, who.issuer, who.subject)

        verifier = JwtTokens(request.issuer, resource, client)
        return Access(verifier, request.issuer, resource, bank_of)
    if not request.needs_token:
        click.echo("no token is asked for: every program on this machine may use this bank", err=True)
        return Access()
    token = _machine_token(settings.store_path.with_suffix(".token"))

    def the_one(who: Principal) -> contextlib.AbstractAsyncContextManager[BankPort]:
        if who != LOCAL:
            raise RuntimeError("only this machine's token is taken")
        return contextlib.nullcontext(bank)

    return Access(MachineToken(token), open_bank=the_one)


def _own_address(request: ServeRequest) -> str:
    host, port = request.address or ("127.0.0.1", 0)
    if port == 0:
        raise click.UsageError("tokens name an address: give a port, or --resource")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"


def _machine_token(path: Path) -> str:
    """Return this machine's token; it is shown only when it is made."""
    try:
        token, is_new = token_file(path)
    except OSError as error:
        raise click.UsageError(f"the token cannot be kept: {error}") from error
    shown = f"token: {token}\nkept in {path}" if is_new else f"the token is in {path}"
    click.echo(f"{shown}; send it as 'Authorization: Bearer TOKEN'", err=True)
    return token


def _say_where(url: str) -> None:
    click.echo(f"serving at {url}", err=True)
