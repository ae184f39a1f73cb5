#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site into build/site with MkDocs, in an environment of its own below build/, and checks it: every
# link and anchor, that no page loads anything from elsewhere, and that the search answers newcomers' questions.
#
#   scripts/site.sh            builds and checks
#   scripts/site.sh --serve    builds, checks, and shows it at http://127.0.0.1:8000 until Ctrl-C
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
    "" | --serve) ;;
    *)
        echo "site: usage: scripts/site.sh [--serve]" >&2
        exit 2
        ;;
esac
wanted=scripts/site/requirements.txt
venv=build/site-tools
if ! cmp -s "$wanted" "$venv/requirements.txt"; then
    echo "site: taking MkDocs from the Python index into $venv"
    python3 -m venv --clear "$venv"
    if ! "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --requirement "$wanted" </dev/null; then
        echo "site: MkDocs can't be had here" >&2
        exit 1
    fi
    cp "$wanted" "$venv/requirements.txt"
fi

# Material's advertisement of its successor would be in each log. With --quiet, --strict counts no warnings.
if ! said=$(NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --clean 2>&1); then
    echo "$said" >&2
    exit 1
fi
python3 scripts/site/check.py build/site tests/docs/newcomers.txt
if [ "${1:-}" = --serve ]; then
    exec python3 -m http.server --bind 127.0.0.1 --directory build/site 8000
fi
