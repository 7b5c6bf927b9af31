"""The index of the API."""

from __future__ import annotations

from tests.support.http import HttpClient


def test_programs_get_the_endpoints_as_json(admin: HttpClient) -> None:
    index = admin.get("/")
    assert (index["name"], index["openapi"]) == ("mockbroker", "/openapi.json")
    topics = [(each["method"], each["path"]) for each in index["endpoints"]["topics"]]
    assert ("POST", "/v1/topics/{topic}/records") in topics
    service = {each["path"] for each in index["endpoints"]["service"]}
    described = {"/v1/about", "/v1/state-machines"}
    assert service == {"/", "/openapi.json", "/healthz", "/metrics", *described}
