// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/load.h"

namespace cuslice {

// Opens libcuslice-config.so, which lies beside the library this code is in. It needs libstdc++, so it comes into a
// process only when there is a file to read.
cuslice_toml_parse_function* open_toml_module(Reason& why);

}  // namespace cuslice
