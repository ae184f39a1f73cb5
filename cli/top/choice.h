// SPDX-License-Identifier: Apache-2.0
// The part of a snapshot that a user of `cuslice top` has chosen to see. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// The order of jobs and groups; on several nodes, on each of them.
enum class Order : uint8_t { gpu, used, share, user, command, count };

struct Choice {
    Order order = Order::gpu;
    bool reversed = false;
    /// Only rows with this text in them, upper and lower case alike; empty: all.
    std::string filter;
    /// A job's processes have a row each.
    bool unfolded = true;
};

/// "used", as the last row says it.
std::string_view name_of(Order order);

/// `snapshot` with the jobs, waiting processes and caches that are chosen, in the order that is chosen. An account is
/// whole or not there; its processes stay together.
Snapshot chosen(const Snapshot& snapshot, const Choice& choice);

}  // namespace cuslice::cli::top
