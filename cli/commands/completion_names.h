// SPDX-License-Identifier: Apache-2.0
// Names for a shell's completion, asked for while somebody types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/launch/environment.h"

namespace cuslice::cli {

struct Invocation;

/// The fake GPUs' profiles in `folder`, in order.
std::vector<std::string> profile_names(const std::string& folder);

/// The names of a kind that are there now: "profiles", or this user's "groups", "jobs" and "pids" of processes on a
/// GPU, each once and in order. Only plain ones (letters, digits, '.', '_' and '-'), as shells expand what completion
/// returns. Empty where nothing can be read.
std::vector<std::string> completion_names(std::string_view kind, const Invocation& invocation);

}  // namespace cuslice::cli
