#!/usr/bin/env python3
"""retrograde and porcupine over the same logs, in turn, on this machine; a Markdown table on standard output.

    run.py --retrograde target/dist/retrograde --timing target/release/deps/peers-HASH --peers /tmp/peers LOG...

`go build -o /tmp/peers .` in this folder makes the one, `cargo bench --no-run` the others. LOGs are Jepsen logs of registers (*.log) and
logs of key-value stores (*.txt). For each: the check alone, and reading and check, in process, the medians of five runs or, where they are
short, of as many as take 50 ms; peak resident memory of a process that did only this; 30 s (`--limit`) and 4 GB for one check.
And the processor time of a whole `retrograde check`, which also explains and writes its report: the median of five processes.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile

RUNS = 5


def measured(command):
    """Verdict, milliseconds of the check, of reading and check, MB; processor time of the process in milliseconds."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return out.read().decode(), (used.ru_utime + used.ru_stime) * 1000


def in_process(command):
    verdict, _, check, total, peak = measured(command)[0].split("\t")
    return verdict, float(check), float(total), float(peak)


def whole(binary, model, log, limit):
    command = [binary, "check", "--model", model, "--time-budget", f"{limit}s", "--memory", "4GiB", log]
    return statistics.median(measured(command)[1] for _ in range(RUNS))


def times(peer, ours, peer_verdict):
    # What ended at the memory limit says no time.
    if peer == 0:
        return ""
    more = ">" if peer_verdict in ("time", "memory") else ""
    ratio = peer / ours
    return f"{more}{ratio:,.0f}" if ratio >= 100 else f"{more}{ratio:.1f}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--retrograde")
    options.add_argument("--timing", required=True)
    options.add_argument("--peers", required=True)
    options.add_argument("--threads", default="0")
    options.add_argument("--limit", type=int, default=30, help="seconds for one check of either")
    options.add_argument("logs", nargs="+")
    options = options.parse_args()
    print("| log, model | verdict | check, ms | porcupine | times | with reading, ms | porcupine | times | MB | porcupine | process, ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    ratios, wrong = [], []
    for log in options.logs:
        name = os.path.basename(log)
        for model, peer in [("cas-register", "register")] if name.endswith(".log") else [("kv", "kv"), ("kv", "kv-whole")]:
            limit = ["--runs", str(RUNS), "--limit", str(options.limit), "--threads", options.threads]
            ours = in_process([options.timing, "--model", model, *limit, log])
            theirs = in_process([options.peers, "-model", peer, "-runs", str(RUNS), "-limit", f"{options.limit}s", log])
            process = f"{whole(options.retrograde, model, log, options.limit):.2f}" if options.retrograde else ""
            verdict = ours[0] if ours[0] == theirs[0] else f"{ours[0]}, porcupine {theirs[0]}"
            if {ours[0], theirs[0]} == {"holds", "violated"}:
                wrong.append(name)
            check, total = (times(theirs[at], ours[at], theirs[0]) for at in (1, 2))
            if theirs[1] > 0:
                ratios.append((theirs[1] / ours[1], theirs[2] / ours[2], name))
            print(
                f"| {name} {peer} | {verdict} | {ours[1]:.4f} | {theirs[1]:.4f} | {check} | {ours[2]:.4f} | {theirs[2]:.4f} | {total} "
                f"| {ours[3]:.0f} | {theirs[3]:.0f} | {process} |",
                flush=True,
            )
    for at, what in [(0, "the check"), (1, "reading and check")]:
        of = sorted(ratio[at] for ratio in ratios)
        mean = math.exp(statistics.mean(map(math.log, of)))
        slower = [ratio[2] for ratio in ratios if ratio[at] < 1]
        print(
            f"\n{len(of)} checks, {what}: least {of[0]:.2f} times, geometric mean {mean:.2f}, greatest {of[-1]:,.0f}; "
            f"slower in {len(slower)}: {', '.join(slower) or 'none'}."
        )
    print(f"\nVerdicts that differ: {', '.join(wrong) or 'none'}.")


main()
