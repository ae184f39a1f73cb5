// SPDX-License-Identifier: Apache-2.0
// The driver and NVML as they are on this machine, for the child that asks them about the GPUs.
#pragma once

#include <string>

namespace cuslice::cli {

/// dlopen with RTLD_NOW, for a path, or a name that the loader looks for. Where libcuslice.so is loaded in the launcher
/// itself, as by an /etc/ld.so.preload that names it, dlopen would answer with that library: then a path is opened past
/// it, and a name in a namespace of its own, in which nothing is preloaded. Null, with dlerror() set, where it fails.
void* open_library(const std::string& file);

}  // namespace cuslice::cli
