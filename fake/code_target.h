// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs that device code is for. A capability is major * 10 + minor; 0 is not known.

namespace cuslice::fake {

struct Target {
    bool ptx = false;
    int capability = 0;
};

/// True if code for one capability runs on a device of another: PTX upwards, cubins within a major version.
constexpr bool runs_on(bool ptx, int code, int device) {
    return ptx ? code <= device : code / 10 == device / 10 && code % 10 <= device % 10;
}

/// True if a device that runs both takes the first: a cubin before PTX, and the newest.
constexpr bool is_taken_before(const Target& first, const Target& second) {
    return first.ptx != second.ptx ? second.ptx : first.capability > second.capability;
}

}  // namespace cuslice::fake
