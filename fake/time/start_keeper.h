// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starts a machine's timekeeper.

#include <string>

namespace cuslice::fake {

/// Its program, beside the fake GPU's libraries.
std::string keeper_path();

/// Starts one, which ends by itself: at once if there is one already. It is no child of this process, which may wait
/// for all of its own. On failure `error` says why.
void start_keeper(const std::string& folder, bool is_virtual, std::string& error);

}  // namespace cuslice::fake
