#!/usr/bin/env bash
# Runs `retrograde check`, writes its reports into a folder, and tells the runner where they are.
#
# RETROGRADE_EVIDENCE, RETROGRADE_ARGUMENTS: paths and arguments, one on each line. GITHUB_OUTPUT takes verdict, reports and
# code. GITHUB_STEP_SUMMARY takes the report in Markdown. Exits with 0 whatever the verdict is: the last step of the action
# exits with the code.
set -euo pipefail

reports=$(mktemp -d "${RUNNER_TEMP:-/tmp}/retrograde-reports.XXXXXX")
lines() {
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ -z "$line" ] || printf '%s\0' "$line"
    done <<<"$1"
}
arguments=() evidence=()
while IFS= read -r -d '' line; do arguments+=("$line"); done < <(lines "${RETROGRADE_ARGUMENTS:-}")
while IFS= read -r -d '' line; do evidence+=("$line"); done < <(lines "${RETROGRADE_EVIDENCE:-}")
if [ "${#evidence[@]}" = 0 ]; then
    echo "the input \`evidence\` names no file" >&2
    exit 2
fi
code=0
retrograde check --report "html=$reports/report.html" --report "json=$reports/report.json" \
    --report "markdown=$reports/report.md" --report "sarif=$reports/report.sarif" \
    ${arguments[@]+"${arguments[@]}"} -- "${evidence[@]}" || code=$?
case "$code" in
0) verdict=holds ;;
1) verdict=violated ;;
3) verdict=unknown ;;
*) verdict=none ;;
esac
{
    echo "verdict=$verdict"
    echo "reports=$reports"
    echo "code=$code"
} >>"$GITHUB_OUTPUT"
# A step summary has at most 1 MiB.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$reports/report.md" ]; then
    head -c 900000 "$reports/report.md" >>"$GITHUB_STEP_SUMMARY"
fi
