"""Snapshots as Prometheus text."""

from __future__ import annotations

import re

from mockbroker.admin.metrics import METRICS, PREFIX, render
from mockbroker.admin.target import ClusterMetrics

SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"\})? \d+(\.\d+)?')


def test_each_family_has_its_help_and_type_before_its_samples():
    labelled = {"requests": {"Fetch": 1}, "throttled": {"q": 1}, "throttled_ms": {"q": 1}}
    labelled |= {"limits_exceeded": {"a.limit": 1}, "admin_responses": {"200": 1}}
    lines = render(ClusterMetrics(groups={"Empty": 1}, **labelled)).splitlines()
    expected = iter(METRICS)
    for help_line, type_line, sample in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        metric = next(expected)
        assert help_line == f"# HELP {PREFIX}{metric.name} {metric.help}"
        assert type_line == f"# TYPE {PREFIX}{metric.name} {metric.kind}"
        assert SAMPLE.fullmatch(sample)
        assert sample.startswith(PREFIX + metric.name)


def test_counters_and_only_counters_end_in_total():
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in METRICS)


def test_labelled_samples_stand_in_order():
    text = render(ClusterMetrics(requests={"Produce": 2, "Fetch": 40}))
    assert (
        'mockbroker_requests_total{api="Fetch"} 40\nmockbroker_requests_total{api="Produce"} 2\n'
        in text
    )


def test_open_connections_are_the_opened_less_the_closed():
    text = render(ClusterMetrics(connections_opened=10, connections_closed=4))
    assert "mockbroker_connections 6\n" in text
    assert "mockbroker_connections_opened_total 10\n" in text


def test_time_is_in_seconds():
    text = render(ClusterMetrics(uptime_ms=1500, throttled_ms={"producer_byte_rate": 2500}))
    assert "mockbroker_uptime_seconds 1.5\n" in text
    assert 'mockbroker_throttle_seconds_total{quota="producer_byte_rate"} 2.5\n' in text


def test_label_values_are_escaped():
    text = render(ClusterMetrics(groups={'a"b\\c\nd': 1}))
    assert r'mockbroker_groups{state="a\"b\\c\nd"} 1' in text
