// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cuslice::tests {

/// Says why the running case, or a part of it, can't be tried here; the caller returns. ctest shows
/// the case as skipped, unless it fails. Works in forked children too.
void skip(const std::string& why);

}  // namespace cuslice::tests
