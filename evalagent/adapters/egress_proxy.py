"""The one way out of the sandbox: an HTTP proxy that reaches the hosts it was told and no other.

Runs alone (`python -c SOURCE PORT HOST…`) in a container of its own, between the run's closed network and the outside.
A HOST is `name` (ports 443 and 80) or `name:port`; `*.name` stands for what is under a name. TLS goes through
unopened (CONNECT), so what the agent says to a host is not read here.
"""

import asyncio
import sys
from urllib.parse import urlsplit

HEAD_LIMIT = 65536
CONNECT_S = 15.0


def allowed(host: str, port: int, hosts: tuple[str, ...]) -> bool:
    """Whether a host and port are on the list; names are compared whole and without case."""
    host = host.lower().rstrip(".")
    for entry in hosts:
        name, _, said = entry.lower().partition(":")
        if port not in ({int(said)} if said else {80, 443}):
            continue
        if host == name or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


async def serve(port: int, hosts: tuple[str, ...]) -> None:
    """Listens until the process is ended."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _request(reader, writer, hosts)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(client, "0.0.0.0", port, limit=HEAD_LIMIT)  # noqa: S104 - in its container
    async with server:
        await server.serve_forever()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hosts: tuple[str, ...]) -> None:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    first, _, rest = head.partition(b"\r\n")
    method, target, version = first.decode("latin-1").split(" ")
    url = urlsplit(f"//{target}" if method == "CONNECT" else target)
    host, port = url.hostname or "", url.port or (443 if method == "CONNECT" else 80)
    if not allowed(host, port, hosts):
        said = f"{host}:{port} is not among the suite's agent.egress\n"
        sys.stderr.write(f"refused {said}")
        await _answer(writer, "403 Forbidden", said)
        return
    try:
        out_reader, out_writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
    except (OSError, TimeoutError) as error:
        await _answer(writer, "502 Bad Gateway", f"{host}:{port} cannot be reached: {error}\n")
        return
    try:
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            fields = [f for f in rest.split(b"\r\n") if f and not f.lower().startswith((b"proxy-", b"connection:"))]
            lines = [f"{method} {path} {version}".encode("latin-1"), *fields, b"Connection: close", b"", b""]
            out_writer.write(b"\r\n".join(lines))
        await asyncio.gather(_pipe(reader, out_writer), _pipe(out_reader, writer))
    finally:
        out_writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = text.encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), tuple(sys.argv[2:])))
