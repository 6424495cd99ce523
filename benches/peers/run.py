#!/usr/bin/env python3
"""retrograde and porcupine over the same files, one after the other, on this machine; a Markdown table on standard output.

    run.py --retrograde target/release/retrograde --peers /tmp/peers DATA...

`go build -o /tmp/peers .` in this folder makes the other one. DATA are Jepsen logs of etcd (*.log) and logs of key-value stores (*.txt).
Processor time of all threads, so that other work on the machine does not count; of whole processes, from their start to their end.
One of retrograde reads, checks, explains and writes its report: the median of five. One of porcupine reads and checks
five times: a fifth of it. Peak resident memory; 30 s and 4 GB for one check.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile

RUNS, LIMIT = 5, 30


def ours(binary, file, model):
    """Verdict, milliseconds, MB."""
    times, peak = [], 0.0
    for _ in range(RUNS):
        with tempfile.TemporaryFile() as out:
            command = [binary, "check", "--model", model, "--time-budget", f"{LIMIT}s", "--memory", "4GiB", file]
            child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
            times.append((used.ru_utime + used.ru_stime) * 1000)
            child.returncode = os.waitstatus_to_exitcode(status)
            peak = max(peak, used.ru_maxrss / 1024)
            out.seek(0)
            verdict = out.read(10).split()[0].decode().lower()
    return {"consistent": "holds"}.get(verdict, verdict), statistics.median(times), peak


def theirs(binary, file, model):
    command = [binary, "-model", model, "-runs", str(RUNS), "-limit", f"{LIMIT}s", file]
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        verdict, _, _, _, peak = out.read().decode().split("\t")
    # What ends at a limit ran once.
    runs = 1 if verdict in ("time", "memory") else RUNS
    return verdict, (used.ru_utime + used.ru_stime) * 1000 / runs, float(peak)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--retrograde", required=True)
    options.add_argument("--peers", required=True)
    options.add_argument("data", nargs="+")
    options = options.parse_args()
    rows = []
    for file in options.data:
        name = os.path.basename(file)
        for model, peer in [("cas-register", "register")] if name.endswith(".log") else [("kv", "kv"), ("kv", "kv-whole")]:
            ours_row, theirs_row = ours(options.retrograde, file, model), theirs(options.peers, file, peer)
            rows.append((f"{name} {peer}", ours_row, theirs_row))
            print(".", end="", file=sys.stderr, flush=True)
    print("\n| file | retrograde | ms | MB | porcupine | ms | MB | times |\n| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |")
    ratios = []
    for name, (verdict, spent, held), (peer, peer_spent, peer_held) in rows:
        ratio = peer_spent / spent
        ratios.append(ratio)
        more = ">" if peer in ("time", "memory") else ""
        print(f"| {name} | {verdict} | {spent:.2f} | {held:.0f} | {peer} | {peer_spent:.2f} | {peer_held:.0f} | {more}{ratio:.2f} |")
    differ = [name for name, a, b in rows if {a[0], b[0]} == {"holds", "violated"}]
    slower = sum(ratio < 1 for ratio in ratios)
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"\n{len(rows)} checks, geometric mean {mean:.2f} times, slower in {slower}, verdicts that differ: {differ or 'none'}.")


main()
