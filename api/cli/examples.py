"""One example of each command that takes an argument or a required option; its help and the handbook show it."""

from __future__ import annotations

from collections.abc import Mapping

_ID = "5c0ffee0a1b2c3d4"

EXAMPLES: Mapping[str, str] = {
    "audit": "audit --subject shop.customer.example --limit 10",
    "backup": "backup /var/backups/frontage.dump",
    "restore": "restore /var/backups/frontage.dump",
    "token": f"token {_ID} --scope connect --domain customer.example",
    "edge forget": "edge forget 1a2b3c4d",
    "app create": "app create --name Acme --cname-target apps.acme.example --application-url https://app.acme.example",
    "app show": f"app show {_ID}",
    "app id": "app id apps.acme.example",
    "app set": f"app set {_ID} --maintenance on --error-page sorry.html",
    "app rotate-secret": f"app rotate-secret {_ID}",
    "app rotate-webhook-secret": f"app rotate-webhook-secret {_ID}",
    "app suspend": f"app suspend {_ID} --reason 'The contract has ended.'",
    "app resume": f"app resume {_ID}",
    "app delete": f"app delete {_ID}",
    "domain list": "domain list --product power --status active",
    "domain show": "domain show shop.customer.example",
    "domain block": "domain block shop.customer.example --reason 'Phishing was reported here.'",
    "domain unblock": "domain unblock shop.customer.example",
    "domain release": "domain release shop.customer.example",
    "domain transfer": f"domain transfer {_ID} shop.customer.example --application-url https://app.acme.example/shop",
    "domain recheck": "domain recheck shop.customer.example",
    "domain power": (
        f"domain power shop.customer.example --application {_ID} --application-url https://app.acme.example/shop"
    ),
    "domain secure": (
        f"domain secure www.customer.example --application {_ID} --application-url https://origin.customer.example"
    ),
    "domain monitor": f"domain monitor customer.example --application {_ID} --record 'A www 192.0.2.1'",
    "domain remove": f"domain remove shop.customer.example --application {_ID} --product power",
    "domain publish-api": f"domain publish-api {_ID}",
    "import": f"import domains.csv --application {_ID} --dry-run",
    "export": f"export --application {_ID} domains.csv",
    "domain-connect templates": "domain-connect templates ./templates --name 'Acme Hosting'",
    "user create": "user create ada@acme.example --organisation Acme --role developer",
    "user set-password": "user set-password ada@acme.example --password-stdin < password.txt",
    "user link": "user link ada@acme.example",
    "user operator": "user operator ada@acme.example",
    "user sign-out": "user sign-out ada@acme.example",
    "user delete": "user delete ada@acme.example",
    "user passkeys": "user passkeys ada@acme.example",
    "user remove-passkey": "user remove-passkey ada@acme.example 9f86d081884c7d65",
    "user create-key": "user create-key ada@acme.example --name deployment --permission change --days 90",
    "user keys": "user keys ada@acme.example",
    "user revoke-key": "user revoke-key ada@acme.example key_5c0ffee",
    "organisation create": "organisation create Acme",
    "organisation add-member": "organisation add-member Acme ada@acme.example --role viewer",
    "organisation remove-member": "organisation remove-member Acme ada@acme.example",
    "webhook replay": f"webhook replay {_ID} --from 2026-11-01 --to 2026-11-02",
    "webhook replay-event": f"webhook replay-event {_ID} evt_5c0ffee",
    "webhook test": f"webhook test {_ID}",
    "webhook enable": f"webhook enable {_ID}",
    "certificate bring": "certificate bring shop.customer.example --certificate fullchain.pem --key key.pem",
    "certificate request": "certificate request shop.customer.example",
    "certificate use-ours": "certificate use-ours shop.customer.example",
    "certificate list": "certificate list --issuer R11 --before 2026-11-20",
    "certificate replace": "certificate replace --serials revoked.txt",
    "certificate show": "certificate show shop.customer.example",
    "certificate progress": "certificate progress --follow",
    "certificate renew": "certificate renew shop.customer.example",
    "certificate revoke": "certificate revoke shop.customer.example --reason keyCompromise",
    "master-key rotate": "master-key rotate --keep-old",
    "master-key export": "master-key export --role edge edge.key",
    "service print": "service print edge --edge-workers 4",
    "service install": "service install edge monitor",
}
"""By the command's words, without `frontage`."""
