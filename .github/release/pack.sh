#!/usr/bin/env bash
# Packs a built program into the archive of a release: pack.sh PROGRAM TAG TARGET [RUNNABLE]. The archive and its checksum go
# into the working directory. RUNNABLE is the same program for the system that runs this script, by default PROGRAM. It prints
# the manual page and the completions.
set -euo pipefail
program=$1 tag=$2 target=$3 runnable=${4:-$1}
root=$(cd "$(dirname "$0")/../.." && pwd)

name="retrograde-$tag-$target"
rm -rf "$name"
mkdir -p "$name/share"
cp "$program" "$root/README.md" "$root/CHANGELOG.md" "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$name"
"$runnable" man >"$name/share/retrograde.1"
"$runnable" completions bash >"$name/share/retrograde.bash"
"$runnable" completions zsh >"$name/share/_retrograde"
"$runnable" completions fish >"$name/share/retrograde.fish"
"$runnable" completions powershell >"$name/share/retrograde.ps1"
case "$target" in
*windows*)
    archive="$name.zip"
    7z a -bso0 "$archive" "$name"
    ;;
*)
    archive="$name.tar.gz"
    tar -czf "$archive" "$name"
    ;;
esac
if command -v sha256sum >/dev/null; then sha256sum "$archive"; else shasum -a 256 "$archive"; fi >"$archive.sha256"
echo "$archive"
