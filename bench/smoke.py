"""Runs quorum_bench for a moment: it has to end well, and its JSON has to be complete.

    smoke.py QUORUM_BENCH

Nothing is said about how fast anything was.
"""

import json
import subprocess
import sys
import tempfile

AXES = {
    "latency": ["N", "side"],
    "throughput": ["K", "side"],
    "handoff_basis": ["side"],
    "handoff": ["waiters", "processes", "side"],
    "fairness": ["waiters", "processes", "hold_ms", "side"],
    "faults": ["fault", "side"],
    "outage": ["fault", "side"],
    "memory": ["what", "side"],
    "load": ["rate", "side"],
}
# A sanitizer's malloc does not tell what it has given out.
MAY_BE_MISSING = {"memory"}
ROUNDS = 2


def check(report):
    for key in ("redlock", "when", "machine", "settings", "quick", "tables", "targets"):
        assert key in report, key
    assert report["failures"] == [], report["failures"]
    tables = {table["id"]: table for table in report["tables"]}
    assert AXES.keys() - MAY_BE_MISSING <= tables.keys() <= AXES.keys(), tables.keys()
    for name, table in tables.items():
        assert table["axes"] == AXES[name] and table["title"] and table["note"], name
        assert table["rows"], name
        places = [tuple(row["at"].values()) for row in table["rows"]]
        assert len(places) == len(set(places)), places
        for row in table["rows"]:
            check_row(name, row)
    for target in report["targets"]:
        assert set(target) == {"what", "target", "measured", "min", "max", "reached"}, target
        assert target["min"] <= target["measured"] <= target["max"], target


def check_row(name, row):
    assert list(row["at"]) == AXES[name] and row["metrics"], row
    for metric, value in row["metrics"].items():
        assert len(value["rounds"]) == (1 if name == "fairness" else ROUNDS), (name, metric)
        if value["median"] is not None:
            assert value["min"] <= value["median"] <= value["max"], (name, metric)
    for metric, ratio in row["ratios"].items():
        assert metric in row["metrics"] and ratio["to"], (name, metric)


def main():
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [sys.argv[1], "--workload", "all", "--rounds", str(ROUNDS), "--json", file.name]
            + ["--seconds-per-round", "0.05", "--in-flight", "1,16", "--waiters", "2,8"]
            + ["--rate", "100,400"]
            # A busy machine is not an outage.
            + ["--memory-locks", "100", "--master-timeout", "300"],
            check=True,
        )
        check(json.load(file))


main()
