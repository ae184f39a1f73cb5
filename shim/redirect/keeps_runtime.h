// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace cuslice {

// Lines to stderr, each in one write and with errno kept. There are no settings yet.

// `cuslice: --redirect-runtime: MODULE: WHAT`
void say_of_module(std::string_view module, std::string_view what);
// `cuslice: --redirect-runtime: MODULE keeps its static CUDA runtime: WHY`
void say_keeps_runtime(std::string_view module, std::string_view why);

}  // namespace cuslice
