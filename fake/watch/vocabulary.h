// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that tests of programs use, for tools in other languages.

#include <string>

namespace cuslice::fake {

/// A text in quotation marks, as JSON has it.
std::string quoted(const std::string& text);

/// {"functions": [...], "results": {"CUDA_ERROR_OUT_OF_MEMORY": 2, ...}}: the driver's functions, as it exports them
/// and as programs write them, and every CUresult.
std::string vocabulary();

/// [{"uuid": ..., "name": ...}, ...]: the GPUs that `machine` describes, as for CUSLICE_FAKE. On failure false and the
/// whole message in `error`.
bool describe_machine(const std::string& machine, std::string& description, std::string& error);

}  // namespace cuslice::fake
