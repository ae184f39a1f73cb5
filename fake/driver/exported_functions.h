// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that this library exports, from functions.def.

#include <span>
#include <string>

namespace cuslice::fake {

struct Exported {
    const char* symbol;
    const char* name;
    int version;
    bool per_thread;
    void* address;
};

std::span<const Exported> exported_functions();
/// True for a function that the driver exports, or one that programs write so.
bool is_driver_function(const std::string& name);

}  // namespace cuslice::fake
