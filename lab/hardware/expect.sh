# SPDX-License-Identifier: Apache-2.0
# For the tests here: says what isn't so, and goes on. The script ends with `exit $failed`.
failed=0
expect() {
    local what=$1
    shift
    "$@" || { echo "not so: $what" >&2; failed=1; }
}
has() { grep -qE -- "$1" "$2"; }
