// SPDX-License-Identifier: Apache-2.0
// Values of `group` other than a name.
#pragma once

#include <string_view>

namespace cuslice {

/// All programs of one user that see the same root folder (container_group.h).
inline constexpr std::string_view kContainerGroup = "@container";

}  // namespace cuslice
