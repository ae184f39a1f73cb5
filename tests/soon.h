// SPDX-License-Identifier: Apache-2.0
// Waits for events that notify nobody: the end of another process, a neighbour's next look.
#pragma once

#include <chrono>
#include <thread>

namespace cuslice::tests {

/// Far longer than anything takes that tests wait for, also under a sanitizer on a machine that is busy with something
/// else. Who has waited for so long waits for what will not come.
inline constexpr std::chrono::seconds kLongEnough{120};

/// True as soon as it is so; false if it has not become so in kLongEnough.
template <typename Condition>
bool soon(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kLongEnough;
    for (;;) {
        const bool over = std::chrono::steady_clock::now() > end;
        if (condition())
            return true;
        if (over)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

}  // namespace cuslice::tests
