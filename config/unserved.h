// SPDX-License-Identifier: Apache-2.0
// Variables of HAMi and MPS that ask for what isn't served, and those of KAI-Scheduler, which tell a pod its
// share without any limit. Who finds that cuslice reads their limits of memory
// believes that it reads these too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cuslice {

enum class OtherTool : uint8_t { hami, mps, kai };

struct Unserved {
    OtherTool tool;
    std::string_view name;
    /// Values with which it asks for nothing.
    std::string_view harmless[3];
    std::string_view why;
};

/// The one that asks for something which is not served; nullptr for any other variable or value. HAMi's may have a
/// GPU's number behind them. Pure.
const Unserved* find_unserved(std::string_view name, std::string_view value);

}  // namespace cuslice
