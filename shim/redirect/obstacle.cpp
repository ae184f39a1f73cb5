// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/obstacle.h"

#include <cstddef>

namespace cuslice {

std::string_view obstacle_of(ObjectSymbols::Found found) {
    // As the enumeration has them.
    constexpr std::string_view kObstacles[] = {"", "",
                                               "its file can't be read, or there is no memory for its symbol table",
                                               "it is stripped of its symbol table", ""};
    return kObstacles[static_cast<size_t>(found)];
}

std::string_view obstacle_of(const ObjectSymbols& symbols, const StaticRuntime& runtime) {
    if (!runtime.major)
        return "it is none of CUDA 12 or 13";
    return symbols.text_changes() ? "the loader changes its code (DT_TEXTREL)" : "";
}

}  // namespace cuslice
