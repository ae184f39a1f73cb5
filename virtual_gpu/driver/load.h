// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

// Opens the real driver, in which its table looks functions up from then on. `explicit_path`: the only place to look,
// or null. Returns false, with the reason in words, where there is none; the table then stays empty. Otherwise writes
// the path that was opened, and `where` completes "found …". Not thread-safe.
bool load_driver(const char* explicit_path, char* path_or_reason, size_t size, const char** where);

// A function that the driver in use exports beside CUDA's, as the fake GPU's does; null where it has none. Thread-safe
// once the driver is loaded.
void* find_in_driver(const char* name);

// Advice for users where there is no driver.
inline constexpr const char* kNoDriverAdvice =
    "In a container: start it with its GPUs (docker run --gpus all). On a host: install NVIDIA's driver package. "
    "Without a GPU: --fake 1xt4";

// Opens the real NVML; null where there is none. `folder`: where the driver in use lies, or null. It is looked at first
// if that driver was chosen by a setting, else where the loader would find no NVML. Thread-safe.
void* open_nvml(const char* folder, bool first, char* path_or_reason, size_t size);

// Has NVML's table look functions up in this handle's library, once. Nobody's calls go there yet. Not thread-safe.
void load_nvml(void* handle);

}  // namespace cuslice
