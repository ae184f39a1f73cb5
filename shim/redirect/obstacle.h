// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "shim/redirect/object_symbols.h"
#include "shim/redirect/plan.h"

namespace cuslice {

// Why an object keeps its static runtime, as far as its file tells; empty where nothing does.
std::string_view obstacle_of(ObjectSymbols::Found found);
std::string_view obstacle_of(const ObjectSymbols& symbols, const StaticRuntime& runtime);

}  // namespace cuslice
