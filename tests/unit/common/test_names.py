import pytest

from common.errors import InvalidName
from common.names import parse_domain, parse_host_name


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
