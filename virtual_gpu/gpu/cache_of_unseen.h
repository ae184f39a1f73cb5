// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// The cache of a context that nobody saw begin: it is prepared at once, but where another cache grows, whose lock is of
// the same rank. Then it begins when it is first used.
enum class CacheOfUnseen : bool { left, prepared };

}  // namespace cuslice
