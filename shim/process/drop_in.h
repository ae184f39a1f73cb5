// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// True if this library was loaded as HAMi-core's: its file has that name.
bool is_drop_in();

}  // namespace cuslice
