"""Providers, by real names of name servers."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import resources
from urllib.parse import urlsplit

import pytest

from common.domain_check.providers import CAREFUL, Capabilities, find_provider, provider_table

SERVERS = """
cloudflare ada.ns.cloudflare.com bob.ns.cloudflare.com gold.foundationdns.com gold.foundationdns.net
route53 ns-2048.awsdns-64.com ns-1024.awsdns-00.org ns-512.awsdns-00.net ns-1536.awsdns-00.co.uk ns-1.awsdns-00.com
google-cloud-dns ns-cloud-a1.googledomains.com ns-cloud-e4.googledomains.com
azure-dns ns1-01.azure-dns.com ns2-01.azure-dns.net ns3-01.azure-dns.org ns4-01.azure-dns.info
digitalocean ns1.digitalocean.com ns2.digitalocean.com ns3.digitalocean.com
hetzner robotns2.second-ns.de robotns3.second-ns.com ns1.your-server.de
linode ns1.linode.com ns5.linode.com
akamai-edge-dns a1-64.akam.net a22-65.akam.net
vultr ns1.vultr.com ns2.vultr.com
hetzner hydrogen.ns.hetzner.com oxygen.ns.hetzner.com helium.ns.hetzner.de ns1.first-ns.de
ovh dns100.ovh.net ns100.ovh.net dns15.ovh.ca ns.anycast.me
gandi ns-100-a.gandi.net ns-200-b.gandi.net ns-50-c.gandi.net
scaleway ns0.dom.scw.cloud ns1.dom.scw.cloud
online-net nsa.online.net
oracle-cloud ns1.p201.dns.oraclecloud.net ns4.p68.dns.oraclecloud.net
dyn ns1.p16.dynect.net ns4.p34.dynect.net
ibm-cloud ns1.softlayer.com ns2.softlayer.com
ns1 dns1.p01.nsone.net dns4.p09.nsone.net
dnsimple ns1.dnsimple.com ns2.dnsimple-edge.net ns4.dnsimple-edge.org
dnsmadeeasy ns10.dnsmadeeasy.com ns0.dnsmadeeasy.com
constellix ns11.constellix.com ns41.constellix.net
ultradns pdns1.ultradns.net pdns2.ultradns.org udns1.ultradns.biz pdns6.ultradns.co.uk
cloudns pns31.cloudns.net ns41.cloudns.uk
easydns dns1.easydns.com dns2.easydns.net dns3.easydns.org dns4.easydns.info
hurricane-electric ns1.he.net ns5.he.net
desec ns1.desec.io ns2.desec.org
bunny kiki.bunny.net coco.bunny.net
gcore ns1.gcorelabs.net ns2.gcdn.services
luadns ns1.luadns.net ns2.luadns.net
rage4 ns1.r4ns.com ns2.r4ns.net
pointdns dns1.pointhq.com dns10.pointhq.com
buddyns b.ns.buddyns.com
rcodezero sec1.rcode0.net sec2.rcode0.net
cscglobal dns1.cscdns.net dns2.cscdns.net
markmonitor ns1.markmonitor.com ns4.markmonitor.com
comlaude ns1.comlaude-dns.com ns2.comlaude-dns.net
freedns ns1.afraid.org ns4.afraid.org
noip nf1.no-ip.com ns1.no-ip.com
dynu ns1.dynu.com ns12.dynu.com
cloudfloordns ns1.mtgsy.co.uk ns3.mtgsy.com
glauca ns1.as207960.glauca.digital
godaddy ns01.domaincontrol.com ns73.domaincontrol.com pdns05.domaincontrol.com
ionos ns1043.ui-dns.com ns1043.ui-dns.org ns1043.ui-dns.de ns1043.ui-dns.biz ns51.1and1.com
namecheap dns1.registrar-servers.com dns2.registrar-servers.com dns1.namecheaphosting.com
porkbun curitiba.ns.porkbun.com fortaleza.ns.porkbun.com maceio.ns.porkbun.com salvador.ns.porkbun.com
namesilo ns1.dnsowl.com ns2.dnsowl.com
name-com ns1cny.name.com ns2fkl.name.com ns3.name.com
dynadot ns1.dyna-ns.net ns2.dyna-ns.net ns1.dynadot.com
hover ns1.hover.com ns2.hover.com
enom dns1.name-services.com dns5.name-services.com
tucows ns1.systemdns.com ns3.systemdns.com
network-solutions ns1.worldnic.com ns57.worldnic.com
register-com dns101.register.com
squarespace ns01.squarespacedns.com ns04.squarespacedns.com
wix ns0.wixdns.net ns14.wixdns.net
wordpress-com ns1.wordpress.com ns3.wordpress.com
dreamhost ns1.dreamhost.com ns3.dreamhost.com
bluehost ns1.bluehost.com ns2.bluehost.com
hostgator ns8001.hostgator.com ns1.websitewelcome.com ns240.hostgator.com.br
hostinger ns1.dns-parking.com ns2.dns-parking.com
siteground ns1.siteground.net ns2.c12345.sgvps.net
a2hosting ns1.a2hosting.com ns4.a2hosting.com
inmotion ns.inmotionhosting.com ns1.webhostinghub.com
greengeeks ns1.greengeeks.net
domain-com ns1.domain.com
ipage ns1.ipage.com
justhost ns1.justhost.com
vercel ns1.vercel-dns.com ns2.vercel-dns.com
rackspace dns1.stabletransit.com ns.rackspacecloud.com
liquidweb ns.liquidweb.com ns1.sourcedns.com
exoscale ns1.exoscale.ch ns1.exoscale.com ns1.exoscale.io ns1.exoscale.net
infomaniak ns11.infomaniak.ch nsany1.infomaniak.com
hostpoint ns.hostpoint.ch ns2.hostpoint.ch
cyon ns1.cyon.ch
inwx ns.inwx.de ns2.inwx.de ns3.inwx.eu ns4.inwx.com
netcup root-dns.netcup.net second-dns.netcup.net
strato shades01.rzone.de docks05.rzone.de
all-inkl ns5.kasserver.com ns6.kasserver.com
united-domains ns.udag.de ns.udag.net ns.udag.org
host-europe ns1.hans.hosteurope.de
domainfactory ns.namespace4you.de ns2.namespace4you.de
hosting-de ns1.hosting.de ns2.hosting.de
http-net ns1.routing.net ns2.routing.net
internetx a.ns14.autodns.com
regfish ns1.regfish-ns.net
variomedia ns1.variomedia.de
checkdomain ns.checkdomain.de
easyname ns1.easyname.eu ns2.easyname.eu
world4you ns1.world4you.at
joker a.ns.joker.com b.ns.joker.com
cnr ns1.rrpproxy.net ns3.hexonet.net
internet-bs ns-canada.topdns.com
realtimeregister ns1.yoursrs.com
transip ns0.transip.net ns1.transip.nl ns2.transip.eu
antagonist ns1.webhostingserver.nl
hostnet ns1.hostnetbv.com
mijndomein ns1.metaregistrar.nl
pcextreme ns001.auroradns.eu ns002.auroradns.nl ns003.auroradns.info
openprovider ns1.openprovider.nl ns2.openprovider.be ns3.openprovider.eu
combell ns3.combell.net
one-com ns01.one.com ns02.one.com
simply ns1.simply.com ns1.unoeuro.com
gratisdns ns1.gratisdns.dk
loopia ns1.loopia.se ns2.loopia.se
glesys ns1.namesystem.se
domeneshop ns1.hyp.net ns3.hyp.net
binero ns1.binero.se
zone-ee ns.zone.eu ns2.zone.eu
aruba dns.technorail.com dns3.arubadns.net dns4.arubadns.cz
register-it ns1.register.it
dinahosting ns.dinahosting.com
arsys dns1.servidoresdns.net dns25.servidoresdns.net
123-reg ns.123-reg.co.uk ns2.123-reg.co.uk
fasthosts ns1.livedns.co.uk ns3.livedns.co.uk
heart-internet ns.mainnameserver.com ns2.mainnameserver.com
names-co-uk ns0.phase8.net
tsohost ns1.tsohost.co.uk
20i ns1.stackdns.com ns4.stackdns.com
mythic-beasts ns1.mythic-beasts.com
ukfast ns0.ukfast.net ns1.ukfast.net
blacknight ns.blacknightsolutions.com
nfsn ns.phx1.nearlyfreespeech.net
wedos ns.wedos.cz ns.wedos.net ns.wedos.com ns.wedos.eu
forpsi ns.forpsi.net ns.forpsi.cz
active24 ns.active24.cz
websupport ns1.websupport.sk
home-pl dns.home.pl dns2.home.pl
nazwa ns1.nazwa.pl
superhosting dns1.superhosting.bg
papaki ns1.papaki.gr
njalla 1-you.njalla.no 2-can.njalla.in 3-get.njalla.fo
regru ns1.reg.ru ns2.reg.ru
nicru ns3-l2.nic.ru ns8-l2.nic.ru
timeweb ns1.timeweb.ru ns3.timeweb.org
beget ns1.beget.com ns1.beget.pro
yandex-360 dns1.yandex.net dns2.yandex.net
yandex-cloud ns1.yandexcloud.net
selectel ns1.selectel.org ns2.selectel.ru
natro ns1.natrohost.com
aliyun dns9.hichina.com ns1.alidns.com vip1.alidns.com
dnspod f1g1ns1.dnspod.net ns3.dnsv5.com
huawei-cloud ns1.huaweicloud-dns.com ns1.huaweicloud-dns.cn
west-cn ns1.myhostadmin.net
xinnet ns11.xincache.com
onamae 01.dnsv.jp 02.dnsv.jp
muumuu dns01.muumuu-domain.com
value-domain ns1.value-domain.com
conoha ns1.conoha.io
sakura ns1.dns.ne.jp ns1.gslb1.gslb.sakura.ne.jp
xserver ns1.xserver.jp
gabia ns.gabia.co.kr
cafe24 ns1.cafe24.com
bigrock dns1.bigrock.in
crazy-domains ns1.crazydomains.com ns1.syrahost.com
netregistry ns1.netregistry.net
synergy ns1.partnerconsole.net
locaweb ns1.locaweb.com.br
registro-br a.auto.dns.br
xneelo ns1.host-h.net
misaka ns1.m1ns.com
parking-sedo ns1.sedoparking.com
parkingcrew ns1.parkingcrew.net
afternic ns1.afternic.com
"""

CASES = [(line.split()[0], server) for line in SERVERS.strip().splitlines() for server in line.split()[1:]]


def test_there_are_enough_providers_and_names_to_be_worth_a_table() -> None:
    assert len(provider_table().providers) >= 100
    assert len({server for _, server in CASES}) >= 200


@pytest.mark.parametrize(("provider", "server"), CASES)
def test_a_name_server_belongs_to_its_provider(provider: str, server: str) -> None:
    assert find_provider([server]).id == provider


@pytest.mark.parametrize(
    ("servers", "name"),
    [
        (("ns1.unheard-of.example", "ns2.unheard-of.example"), "unheard-of.example"),
        (("ns1.dns.unheard-of.co.uk",), "unheard-of.co.uk"),
        (("notcloudflare.com", "ns.notcloudflare.com"), "notcloudflare.com"),
        (("awsdns-01.com.evil.example",), "evil.example"),
        ((), "Unknown"),
    ],
)
def test_an_unknown_provider_is_named_after_its_name_servers_and_is_careful(
    servers: tuple[str, ...], name: str
) -> None:
    provider = find_provider(servers)

    assert (provider.name, provider.is_known, provider.capabilities) == (name, False, CAREFUL)


def test_the_soa_tells_the_provider_behind_vanity_name_servers() -> None:
    vanity = ("ns1.shop.example", "ns2.shop.example")
    soa = "ns-100.awsdns-12.com awsdns-hostmaster.amazon.com 7200 900 1209600 86400"

    assert find_provider(vanity, soa).id == "route53"
    assert find_provider(vanity, "ns1.shop.example dns.cloudflare.com 10000 2400 604800 1800").name == "shop.example"
    assert find_provider(("ada.ns.cloudflare.com",), soa).id == "cloudflare"  # the name servers come first


def test_of_several_providers_the_one_with_most_name_servers_counts() -> None:
    assert find_provider(("dns1.p01.nsone.net", "ns-1.awsdns-00.com", "ns-512.awsdns-00.net")).id == "route53"


def test_each_claim_has_a_source_and_each_capability_of_the_table_is_one_that_there_is() -> None:
    content = json.loads(resources.files("common.domain_check").joinpath("providers.json").read_text("utf-8"))
    known = {field.name for field in fields(Capabilities)}
    for row in content["providers"]:
        assert row["capabilities"].keys() <= known, row["id"]
    for provider in provider_table().providers:
        claims = {name for name in known if getattr(provider.capabilities, name) != getattr(CAREFUL, name)}
        claims |= {name for name in ("api", "domain_connect_id") if getattr(provider, name)} | {"name_servers"}
        assert claims <= provider.sources.keys(), provider.id
        for source in (*provider.sources.values(), provider.help_url):
            assert urlsplit(source or "").scheme == "https", provider.id


def test_consoles_are_pages_of_their_own_for_one_domain_at_most() -> None:
    consoles = {each.id: each for each in provider_table().providers if each.console_url is not None}
    assert consoles.keys() >= {"cloudflare", "godaddy", "ionos", "name-com", "namecheap", "route53", "squarespace"}
    for provider in consoles.values():
        url = urlsplit((provider.console_url or "").replace("{domain}", "customer.example"))
        assert (url.scheme, "{" in url.path) == ("https", False), provider.id
        assert provider.console_url != provider.help_url or provider.id == "hurricane-electric"
