#pragma once
#include <cstddef>

namespace cuslice {

// Opens the real driver and fills its table. `explicit_path`: the only place to look, or null. Returns false, with the
// reason in words, where there is none; the table then stays empty. Writes the path that was opened otherwise. Not
// thread-safe.
bool load_driver(const char* explicit_path, char* path_or_reason, std::size_t size);

// The same for NVML. `beside`: a folder to look in first (where the driver in use lies), or null.
bool load_nvml(const char* beside, char* path_or_reason, std::size_t size);

}  // namespace cuslice
