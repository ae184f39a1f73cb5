// SPDX-License-Identifier: Apache-2.0
// The answer that goes from the querying child to the launcher: lines of fields divided by tabs.
#pragma once

#include <string>
#include <string_view>

#include "cli/gpus/gpus.h"

namespace cuslice::cli {

std::string write_answer(const Gpus& gpus);
/// An answer that stops before its end, as of a child that died, is a failure.
Gpus parse_answer(std::string_view text);

}  // namespace cuslice::cli
