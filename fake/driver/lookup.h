#pragma once
// Everything that this library exports, from functions.def.

#include <span>

namespace cuslice::fake {

struct Exported {
    const char* symbol;
    const char* name;
    int version;
    bool per_thread;
    void* address;
};

std::span<const Exported> exported_functions();

}  // namespace cuslice::fake
