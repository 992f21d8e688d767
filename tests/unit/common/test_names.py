import pytest

from common.errors import InvalidName
from common.names import (
    load_public_suffixes,
    parse_domain,
    parse_enrollable,
    parse_host_name,
    parse_subdomain,
    wildcard_above,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("WWW.Example.COM", "www.example.com"),
        ("www.example.com.", "www.example.com"),
        ("www.example.com。", "www.example.com"),
        ("Bücher.example.com", "xn--bcher-kva.example.com"),
        ("XN--BCHER-KVA.example.com", "xn--bcher-kva.example.com"),
        ("straße.example.de", "xn--strae-oqa.example.de"),
        ("ＷＷＷ.example.com", "www.example.com"),
        ("shop.demo.localhost", "shop.demo.localhost"),
        ("a." * 125 + "abc", "a." * 125 + "abc"),
    ],
)
def test_spellings_of_a_name_become_one(text: str, canonical: str) -> None:
    assert parse_domain(text).text == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "com",
        "co.uk",
        "localhost",
        "a..example.com",
        ".example.com",
        "www.example.com..",
        "*.example.com",
        "www_a.example.com",
        "-a.example.com",
        "a-.example.com",
        "www.example.com:443",
        "www.example.com/",
        "https://www.example.com",
        "user@example.com",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "１２７.0.0.1",
        "::1",
        "[::1]",
        "www.example.com\x00",
        "www.example.com\n",
        " www.example.com",
        "www.exa mple.com",
        "\ud800.example.com",
        "a\u202eb.example.com",
        "xn--zzzzzz99999.example.com",
        "xn--a.example.com",
        "a" * 64 + ".example.com",
        "a." * 125 + "abcd",
        "ü" * 100_000,
    ],
)
def test_what_is_no_domain_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse_domain(text)


def test_a_word_without_a_dot_is_refused_for_that() -> None:
    with pytest.raises(InvalidName, match="a whole domain has a dot"):
        parse_domain("4f6c1a9e2b7d0385")


@pytest.mark.parametrize(
    ("text", "registrable", "subdomain"),
    [
        ("example.com", "example.com", None),
        ("www.example.co.uk", "example.co.uk", "www"),
        ("a.b.example.com", "example.com", "a.b"),
        ("demo.localhost", "demo.localhost", None),
        ("shop.demo.localhost", "demo.localhost", "shop"),
        ("www.食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn", "www"),
    ],
)
def test_a_name_knows_its_registrable_part(text: str, registrable: str, subdomain: str | None) -> None:
    name = parse_domain(text)

    assert (name.registrable, name.subdomain, name.is_root) == (registrable, subdomain, subdomain is None)


def test_host_names_may_be_single_labels() -> None:
    assert parse_host_name("LOCALHOST") == "localhost"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("www", "www"), ("A.B", "a.b"), ("_dmarc", "_dmarc"), ("sel._domainkey.Bücher", "sel._domainkey.xn--bcher-kva")],
)
def test_places_before_a_domain_have_one_spelling(text: str, canonical: str) -> None:
    assert parse_subdomain(text, "customer.example") == canonical


@pytest.mark.parametrize(
    "text", ["", ".", "www.", ".www", "a..b", "-a", "a-", "a b", "*", "@", "a/b", "x" * 64, "ü" * 300]
)
def test_what_is_no_place_before_a_domain_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse_subdomain(text, "customer.example")


def test_a_place_leaves_room_for_its_domain() -> None:
    place = ".".join(["x" * 60] * 3) + ".y"
    domain = f"{'z' * (253 - len(place) - len('..example'))}.example"
    assert len(f"{parse_subdomain(place, domain)}.{domain}") == 253
    with pytest.raises(InvalidName):
        parse_subdomain(f"{place}y", domain)


def test_loaded_suffixes_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    load_public_suffixes()
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("a file is read"))
    assert parse_domain("shop.example.co.uk").registrable == "example.co.uk"


@pytest.mark.parametrize(
    ("text", "canonical", "subdomain"),
    [
        ("*.Customer.Example.", "*.customer.example", "*"),
        ("*.shop.customer.co.uk", "*.shop.customer.co.uk", "*.shop"),
        ("*.Bücher.example", "*.xn--bcher-kva.example", "*"),
        ("*.customer.github.io", "*.customer.github.io", "*"),
        ("*." + "a." * 124 + "abc", "*." + "a." * 124 + "abc", "*." + "a." * 122 + "a"),
        ("shop.customer.example", "shop.customer.example", "shop"),
    ],
)
def test_wildcards_can_be_enrolled_as_names_can(text: str, canonical: str, subdomain: str) -> None:
    name = parse_enrollable(text)
    assert (name.text, name.subdomain, name.is_wildcard) == (canonical, subdomain, canonical[0] == "*")
    assert not name.is_root


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "*.",
        "**.customer.example",
        "*customer.example",
        "*a.customer.example",
        "shop.*.example",
        "shop.customer.*",
        "*.*.customer.example",
        "*..customer.example",
        "＊.customer.example",
        "*.com",
        "*.co.uk",
        "*.github.io",
        "*.ck",  # a rule for every name beneath
        "*.compute.amazonaws.com",
        "*.127.0.0.1",
        "*.localhost",
        "*.-a.example",
        "*." + "a." * 125 + "abc",
        "*." * 100_000,
        "*" * 100_000,
    ],
)
def test_wildcards_of_no_single_owner_or_in_another_place_are_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse_enrollable(text)


def test_wildcard_stands_for_names_one_label_beneath() -> None:
    assert wildcard_above("a.b.example") == "*.b.example"
    assert wildcard_above("localhost") == "*.", "nothing is enrolled under it"
