// SPDX-License-Identifier: Apache-2.0
// Recognises a program that carries NVIDIA's static runtime, which no shim can be put before.
#pragma once

#include <string>

namespace cuslice::cli {

/// True if the file is a program with device code in it, as nvcc puts it there, that needs no shared runtime. False in
/// doubt, and for what is no ELF file of 64 bits: a runtime in a library that it opens later can't be seen.
bool carries_static_runtime(const std::string& path);

/// True if the file has one: without it nobody knows where the runtime's functions are.
bool has_symbol_table(const std::string& path);

}  // namespace cuslice::cli
