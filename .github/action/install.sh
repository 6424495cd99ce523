#!/usr/bin/env bash
# Installs a release for the system of the runner. If `retrograde` is on the PATH already, it stays.
#
# RETROGRADE_RELEASES: address of the releases. RETROGRADE_VERSION: a tag such as v0.1.0; without it the latest release.
# GITHUB_PATH: the file that takes folders for the PATH of later steps. RUNNER_TEMP: a folder for the program.
set -euo pipefail

if command -v retrograde >/dev/null; then
    echo "retrograde is installed: $(command -v retrograde)"
    exit 0
fi
# The system and the processor, as in the names of the archives that release.yml makes.
case "$(uname -s) $(uname -m)" in
"Linux x86_64") target=x86_64-unknown-linux-musl archive=tar.gz ;;
"Linux aarch64") target=aarch64-unknown-linux-musl archive=tar.gz ;;
"Darwin arm64") target=aarch64-apple-darwin archive=tar.gz ;;
"Darwin x86_64") target=x86_64-apple-darwin archive=tar.gz ;;
MINGW*" x86_64" | MSYS*" x86_64") target=x86_64-pc-windows-msvc archive=zip ;;
*)
    echo "no release is built for $(uname -s) on $(uname -m): install retrograde with cargo, and put it on the PATH" >&2
    exit 1
    ;;
esac
fetch() { curl --fail --silent --show-error --location --retry 3 "$@"; }
version=${RETROGRADE_VERSION:-}
if [ -z "$version" ]; then
    # The address of the latest release leads to that of its tag.
    latest=$(fetch --output /dev/null --write-out '%{url_effective}' "$RETROGRADE_RELEASES/latest")
    version=${latest##*/}
fi
name="retrograde-$version-$target"
folder="${RUNNER_TEMP:-$(mktemp -d)}/retrograde-$version"
mkdir -p "$folder"
cd "$folder"
for file in "$name.$archive" "$name.$archive.sha256"; do
    fetch --remote-name "$RETROGRADE_RELEASES/download/$version/$file"
done
if command -v sha256sum >/dev/null; then sha256sum --check --quiet "$name.$archive.sha256"; else shasum -a 256 --check --quiet "$name.$archive.sha256"; fi
case "$archive" in
zip) unzip -q -o "$name.$archive" ;;
*) tar -xzf "$name.$archive" ;;
esac
echo "$folder/$name" >>"$GITHUB_PATH"
echo "installed $("$folder/$name/retrograde" --version)"
