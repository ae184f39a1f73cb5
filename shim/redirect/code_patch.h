// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "config/text.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/program_symbols.h"

namespace cuslice {

// Puts a jump to its target at the beginning of each function; nothing of what stood there is read as code. Every jump
// or none: where the kernel refuses one (SELinux's execmod, a filter of system calls), the code is as it was, and `why`
// says so. For a program that runs none of these functions meanwhile: before main.
bool redirect(const ProgramSymbols& symbols, std::span<const Redirection> redirections, Reason& why);

}  // namespace cuslice
