"""Certificates' subjects become principals as Java writes and Kafka maps them."""

from __future__ import annotations

import pytest

from mockbroker.core.security.principals import (
    NoMatchingRuleError,
    PrincipalMapper,
    distinguished_name,
    user,
)

KIP_371 = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    r"DEFAULT"
)


def subject(*attributes: tuple[str, str]) -> tuple[tuple[tuple[str, str], ...], ...]:
    return tuple((attribute,) for attribute in attributes)


def test_a_user_is_a_principal_of_type_user():
    assert user("alice") == "User:alice"


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (
            [("countryName", "US"), ("organizationName", "Org"), ("commonName", "alice")],
            "CN=alice,O=Org,C=US",
        ),
        ([("organizationName", 'a,b+c"d\\e<f>g;h')], r"O=a\,b\+c\"d\\e\<f\>g\;h"),
        ([("commonName", " spaced ")], r"CN=\ spaced\ "),
        ([("commonName", "#1")], r"CN=\#1"),
        # What Java has no keyword for is its object id and the hex of its encoding.
        ([("emailAddress", "x@y")], "1.2.840.113549.1.9.1=#1603784079"),
        ([("serialNumber", "7")], "2.5.4.5=#130137"),
        ([("emailAddress", "x" * 200)], "1.2.840.113549.1.9.1=#1681c8" + "78" * 200),
        ([], ""),
    ],
)
def test_a_subject_is_written_as_java_writes_it(attributes, name):
    assert distinguished_name(subject(*attributes)) == name


def test_attributes_of_one_part_are_joined():
    assert distinguished_name(((("commonName", "a"), ("userId", "7")),)) == "CN=a+UID=7"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        (KIP_371, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        (KIP_371, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (KIP_371, "cn=JohnDoe,OU=x", "johndoe"),
        (KIP_371, "OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun"),
        ("RULE:^CN=(.*?)$/$1/U", "CN=bob", "BOB"),
        # A group that is not there stays text; $12 with one group is group 1 and a 2.
        (r"RULE:^CN=(\w+)$/$1@$4-$12/", "CN=bob", "bob@$4-bob2"),
        (r"RULE:^CN=(\w+)\/x$/\$$1\/y/", "CN=bob/x", "$bob/y"),
        ("RULE:^CN=a$/x/ , DEFAULT", "CN=b", "CN=b"),
    ],
)
def test_the_first_rule_that_fits_maps_a_name(rules, name, mapped):
    assert PrincipalMapper(rules).name(name) == mapped


def test_a_name_that_no_rule_fits_is_nobodys():
    with pytest.raises(NoMatchingRuleError, match="CN=b"):
        PrincipalMapper("RULE:^CN=a$/x/").name("CN=b")


@pytest.mark.parametrize("rules", ["deFAULT", "RULE:a", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/"])
def test_rules_that_are_none_are_refused(rules):
    with pytest.raises(ValueError, match=r"rule|pattern"):
        PrincipalMapper(rules)
