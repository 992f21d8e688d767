"""What a rotation of the secret, or the end of a configuration, ends of what browsers' tokens made."""

from __future__ import annotations

from api.services.application_secrets import rotate_client_secret
from tests.integration.api.browsers.parts import (
    EVIL,
    FRESH,
    OWN,
    Browser,
    open_link,
    power,
    powered,
    register,
    share,
    through_link,
)
from tests.integration.api.browsers.test_links import derived
from tests.integration.api.connecting import World
from tests.integration.api.partner import Partner


async def rotate(world: World, partner: Partner, *, keeps_links: bool = False, ends_old: bool = False) -> None:
    async with world.service.database.transaction() as connection:
        secret = await rotate_client_secret(connection, world.service.keyring, partner.id, keeps_links=keeps_links)
        assert secret is not None
        partner.secret = secret
        if ends_old:
            await connection.execute("update applications set previous_expires_at = now() where id = $1", partner.id)


async def made_by_tokens(partner: Partner) -> tuple[str, str, str, str]:
    """A link, one derived from it, a configuration, and a waiting flow of a browser."""
    link = await share(partner, power(OWN))
    child = await derived(await through_link(partner, link), 30, domain=FRESH)
    configuration_id = await register(partner, power("https://other.example/x"))
    begun = await Browser(partner, partner.token(scope="connect")).begin(domain=FRESH, **power(OWN))
    return link, child, configuration_id, begun.body["id"]


async def test_a_rotation_ends_what_tokens_of_the_old_secret_made_once_that_secret_ends(
    world: World, partner: Partner
) -> None:
    link, child, configuration_id, flow_id = await made_by_tokens(partner)
    await rotate(world, partner)
    assert [(await open_link(partner, each)).status for each in (link, child)] == [200, 200], "for 24 hours"

    await rotate(world, partner)

    assert [(await open_link(partner, each)).status for each in (link, child)] == [404, 404]
    browser = Browser(partner, partner.token(scope="connect"))
    gone = await browser.begin(domain=FRESH, configurationId=configuration_id)
    assert (gone.status, gone.body["code"]) == (404, "configuration_not_found")
    for method, action in (("GET", ""), ("POST", "/plan"), ("POST", "/share")):
        refused = await browser.call(method, f"/connect/flows/{flow_id}{action}")
        assert (refused.status, refused.body["code"]) == (409, "secret_ended")
    assert (await partner.call("GET", "/sharing/connect")).body["links"] == []
    assert await register(partner, power("https://other.example/x")) == configuration_id, "registered again, it is back"
    assert (await browser.begin(domain=FRESH, configurationId=configuration_id)).status == 201


async def test_what_the_old_secret_made_in_its_last_hours_ends_with_it(world: World, partner: Partner) -> None:
    old = partner.secret
    await rotate(world, partner)
    new, partner.secret = partner.secret, old
    link, child, _, flow_id = await made_by_tokens(partner)
    partner.secret = new
    async with world.service.database.transaction() as connection:
        await connection.execute("update applications set previous_expires_at = now()")
    assert [(await open_link(partner, each)).status for each in (link, child)] == [404, 404]
    refused = await Browser(partner, partner.token(scope="connect")).call("GET", f"/connect/flows/{flow_id}")
    assert refused.body["code"] == "secret_ended"


async def test_a_rotation_keeps_them_on_purpose(world: World, partner: Partner) -> None:
    link, child, configuration_id, flow_id = await made_by_tokens(partner)
    await rotate(world, partner, keeps_links=True, ends_old=True)
    assert [(await open_link(partner, each)).status for each in (link, child)] == [200, 200]
    browser = Browser(partner, partner.token(scope="connect"))
    assert (await browser.begin(domain=FRESH, configurationId=configuration_id)).status == 201
    assert (await browser.finish_begun(flow_id))["power"]["status"] == "success"


async def test_a_removed_configuration_ends_its_links_and_flows(partner: Partner) -> None:
    configuration_id = await register(partner, power("https://other.example/x"))
    browser = Browser(partner, partner.token(scope="connect", configurationId=configuration_id))
    child = await derived(browser, 30, domain=FRESH)
    begun = await browser.begin(domain=FRESH)
    await browser.until(begun.body["id"], "planned")

    assert (await partner.call("DELETE", f"/connect/configurations/{configuration_id}")).status == 200

    assert (await open_link(partner, child)).status == 404
    assert (await browser.begin(domain=FRESH)).body["code"] == "configuration_not_found"
    assert (await browser.until(begun.body["id"], "closed"))["error"]["code"] == "configuration_removed"
    assert FRESH not in await powered(partner)


async def test_flows_from_before_the_bound_enrol_no_origin_of_a_browsers(
    world: World, browser: Browser, partner: Partner
) -> None:
    """A row that an older version wrote: the monitor asks again whose value it is."""
    begun = await browser.begin(domain=FRESH, **power(OWN))
    await browser.until(begun.body["id"], "planned")
    async with world.service.database.transaction() as connection:
        await connection.execute(
            "update connect_flows set requested = replace(requested::text, $1, $2)::jsonb", OWN, EVIL
        )
    found = await browser.finish_begun(begun.body["id"])
    assert (found["power"]["status"], found["power"]["code"]) == ("failed", "outside_configuration")
    assert FRESH not in await powered(partner)
