"""Clients that people use, over HTTP/2 and TLS: Debian's curl, and Node's own client."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path

import orjson
import pytest

from tests.component.peers import Wire, origin
from tests.component.test_http2_tls import NAMES, service
from tests.tls_parts import the_ca

_NODE = """
const [port, authority] = process.argv.slice(1);
const client = require("node:http2").connect(`https://127.0.0.1:${port}`, { servername: authority });
const read = (stream) =>
  new Promise((resolve, reject) => {
    const seen = { interims: [], content: "" };
    stream.on("headers", (fields) => seen.interims.push(fields[":status"]));
    stream.on("response", (fields) => (seen.status = fields[":status"]));
    stream.on("trailers", (fields) => (seen.trailers = { ...fields }));
    stream.on("data", (data) => (seen.content += data));
    stream.on("end", () => resolve(seen)).on("error", reject);
  });
const ask = (path, fields, options) => client.request({ ":path": path, ":authority": authority, ...fields }, options);
(async () => {
  const left = ask("/endless");
  await new Promise((resolve) => left.once("data", resolve));
  const answers = await Promise.all([...Array(99).keys()].map((n) => read(ask(`/${n}`))));
  left.close(8);
  const upload = ask("/upload", { ":method": "POST", te: "trailers" }, { waitForTrailers: true });
  upload.on("wantTrailers", () => upload.sendTrailers({ "x-sum": "7" }));
  upload.write("a".repeat(300000));
  upload.end("b".repeat(300000));
  console.log(JSON.stringify({
    answers: answers.map(({ status, content }) => `${status} ${content}`),
    hints: await read(ask("/hints")),
    upload: await read(upload),
  }));
  client.close();
})();
"""


@pytest.mark.parametrize("expect", ["Expect: 100-continue", "Expect:"])
async def test_curl_gets_the_response_to_an_upload_that_its_origin_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expect: str
) -> None:
    async def answer_early(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
        wire.close()

    (tmp_path / "ca.pem").write_text(the_ca().pem)
    with (tmp_path / "body").open("wb") as body:
        body.truncate(5_000_000)
    async with origin(answer_early) as there, service(tmp_path, monkeypatch, there.url) as port:
        for name, content in ((NAMES[0], b"too large"), ("no.example.com", b"")):
            command = ["curl", "-sS", "--http2", "-H", expect, "--cacert", str(tmp_path / "ca.pem")]
            command += ["--data-binary", f"@{tmp_path / 'body'}", "-w", " %{http_code}", "-H", f"Host: {name}"]
            command += ["--resolve", f"{NAMES[0]}:{port}:127.0.0.1", f"https://{NAMES[0]}:{port}/"]
            output = await _run(command)
            assert output.startswith(content)
            assert output.endswith(b" 413" if content else b" 404")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_node_has_a_hundred_streams_hints_trailers_and_a_download_that_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_left = asyncio.Event()

    async def answer(wire: Wire) -> None:
        while True:
            target = (await wire.head()).split(b" ")[1]
            if target == b"/endless":
                await wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
                await wire.rest()
                was_left.set()
                return
            content = target
            if target == b"/upload":
                content = await _upload(wire)
            elif target == b"/hints":
                await wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
            await wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await wire.send(b"%x\r\n%b\r\n0\r\nX-Sum: 9\r\n\r\n" % (len(content), content))

    (tmp_path / "ca.pem").write_text(the_ca().pem)
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(tmp_path / "ca.pem"))
    async with origin(answer) as there, service(tmp_path, monkeypatch, there.url) as port:
        seen = orjson.loads(await _run(["node", "-e", _NODE, str(port), NAMES[0]]))
        await asyncio.wait_for(was_left.wait(), 20)
    assert seen["answers"] == [f"200 /{number}" for number in range(99)]
    assert (seen["hints"]["interims"], seen["hints"]["content"]) == ([103], "/hints")
    assert (seen["upload"]["content"], seen["upload"]["trailers"]) == ("600000, x-sum: 7", {"x-sum": "9"})


async def _upload(wire: Wire) -> bytes:
    """Return how much content came in chunks, and the trailer field behind them."""
    total = 0
    while size := int(await wire.reader.readuntil(b"\r\n"), 16):
        await wire.exactly(size + 2)
        total += size
    return b"%d, %b" % (total, (await wire.head()).removesuffix(b"\r\n\r\n"))


async def _run(command: list[str]) -> bytes:
    """Return what the command prints."""
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        output, errors = await asyncio.wait_for(process.communicate(), 20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert (process.returncode, errors) == (0, b"")
    return output
