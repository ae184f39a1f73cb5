#pragma once
#include <cstddef>

#include "virtual_gpu/driver/module_range.h"

// Where the real NVML lies, once it is loaded. Its entrance (shim/nvml/stubs_x86_64.S) looks at it, hence the plain
// name.
extern "C" cuslice::ModuleRange cuslice_nvml_module;

namespace cuslice {

// Opens the real driver and fills its table. `explicit_path`: the only place to look, or null. Returns false, with the
// reason in words, where there is none; the table then stays empty. Writes the path that was opened otherwise. Not
// thread-safe.
bool load_driver(const char* explicit_path, char* path_or_reason, std::size_t size);

// The same for NVML: fills cuslice_physical_nvml_slots, and nobody's calls go there yet. `beside`: a folder to look in
// first (where the driver in use lies), or null. Thread-safe: who comes at the same time writes the same.
bool load_nvml(const char* beside, char* path_or_reason, std::size_t size);

// From now on calls of NVML's go to the real library.
void publish_nvml();

}  // namespace cuslice
