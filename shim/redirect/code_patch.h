// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "config/text.h"
#include "shim/redirect/object_symbols.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/veneers.h"

namespace cuslice {

// Puts a jump at the beginning of each function, which leads to its target by way of a veneer; nothing of what stood
// there is read as code. Every jump or none: where the kernel refuses one (SELinux's execmod, a filter of system
// calls), the code is as it was, and `why` says so. For an object that runs none of these functions meanwhile: before
// main, or before a library's constructors. `late`: for targets that aren't known yet; null: they are.
bool redirect(const ObjectSymbols& symbols, std::span<const Redirection> redirections, const LateBinding* late,
              Veneers& veneers, Reason& why);

}  // namespace cuslice
