"""``python -m tests.python_client``: generate the Python client that the API serves, from its OpenAPI document.

The generator is openapi-python-client, found on PATH (``pipx install openapi-python-client``). Run it once calls or
fields change; a test fails for calls that the client lacks.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from api.reference.document import build
from api.sdk.assets import HERE, PYTHON_CLIENT
from common.version import VERSION

_PACKAGE: Final = "frontage_client"
_SETTINGS: Final = {"project_name_override": "frontage-client", "package_name_override": _PACKAGE, "post_hooks": []}
_README: Final = """\
# frontage-client

A typed client of the Frontage API, generated from its `/openapi.json`.

```python
from frontage_client import AuthenticatedClient
from frontage_client.api.power import get_power, power_domain
from frontage_client.models import PowerBody

client = AuthenticatedClient("https://api.frontage.example", token, headers={"applicationId": application_id})
power_domain.sync(
    client=client, body=PowerBody(domain="shop.customer.example", application_url="https://app.acme.example/shop")
)
print(get_power.sync(client=client))
```

Each call has `sync`, `sync_detailed` (with the status and the header fields), `asyncio` and
`asyncio_detailed`.
"""


def main() -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "openapi.json").write_bytes(orjson.dumps(build("https://api.frontage.example")))
        (directory / "settings.yaml").write_bytes(orjson.dumps(_SETTINGS))
        command = ["openapi-python-client", "generate", "--path", "openapi.json", "--config", "settings.yaml"]
        try:
            subprocess.run([*command, "--output-path", "client"], cwd=directory, check=True)
        except FileNotFoundError:
            sys.exit("tests.python_client: first `pipx install openapi-python-client`")
        client = directory / "client"
        (client / "README.md").write_text(_README, "utf-8")
        (HERE / PYTHON_CLIENT).write_bytes(_pack(client))


def _pack(client: Path) -> bytes:
    """Return the source archive that ``pip install`` takes: equal files make equal bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(path for path in client.rglob("*") if path.is_file() and path.name != ".gitignore"):
            content = path.read_bytes()
            member = tarfile.TarInfo(f"{_PACKAGE}-{VERSION}/{path.relative_to(client).as_posix()}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), 9, mtime=0)


if __name__ == "__main__":
    main()
