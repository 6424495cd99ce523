#!/usr/bin/env bash
# Seeds for the fuzz targets, from histories/ and tests/samples: tests/fuzz/corpus/TARGET/, one file for each distinct content.
# The seed of the target `report` is a report of the samples, so the program is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
corpus=tests/fuzz/corpus

seed() { # TARGET FILE
    mkdir -p "$corpus/$1"
    cp "$2" "$corpus/$1/$(cksum <"$2" | tr ' ' '-')"
}

# The target for a file: by its name where a format is known by its name, else by how its content begins.
target() {
    case "$1" in
    *.sketch | *expected.json | *.md) ;;
    */samples/exports/*) echo audit ;;
    *.rgh) echo container ;;
    *.toml) echo rules_file ;;
    *.edn) echo edn ;;
    *.wal) echo etcd_log ;;
    */db | *.db) echo etcd_store ;;
    *operations.json) echo etcd_operations ;;
    *traffic.json) echo etcd_traffic ;;
    *.report/*watch.json | *etcd-watches.json) echo etcd_watches ;;
    *etcd-watch.json) echo etcd_watch ;;
    *list*.json | *objects.json) echo list ;;
    *watch*.json) echo watch ;;
    *)
        case "$(head -c 400 "$1" | tr -d '[:space:]')" in
        '{"kind":"capture"'*) echo capture ;;
        *'"kind":"Event'* | *auditID*) echo audit ;;
        '{'*) echo operations ;;
        *) echo jepsen_log ;;
        esac
        ;;
    esac
}

while IFS= read -r -d '' file; do
    of="$(target "$file")"
    [ -z "$of" ] || seed "$of" "$file"
done < <(find histories tests/samples -type f -size -64k -print0)

made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
tar -cf "$made/logs.tar" -C tests/samples audit.log capture.jsonl history.edn
(cd histories/rules/watch-gap && tar -cf "$made/report.tar" violation.report)
for archive in "$made"/*.tar; do seed archive "$archive"; done

# A violation and an order are found, which the exit code says: 1. 2 is a failure.
code=0
cargo run --quiet --locked -- check --proofs --json="$made/report.json" --quiet tests/samples/audit.log tests/samples/history.edn || code=$?
[ "$code" -ne 2 ]
seed report "$made/report.json"

for target in tests/fuzz/fuzz_targets/*.rs; do
    name="$(basename "$target" .rs)"
    count="$(find "$corpus/$name" -type f 2>/dev/null | wc -l)"
    echo "$count $name"
    [ "$count" -gt 0 ] || { echo "no seed for $name" >&2; exit 1; }
done
