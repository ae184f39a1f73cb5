#pragma once
#include <span>

#include "config/config_error.h"
#include "config/settings.h"

// Choosing and ordering GPUs is CUDA_VISIBLE_DEVICES' work. What is left to do in the program's own process is to make
// UUIDs of it before the driver reads it: of indices that the program set itself, which count in the list that `cuslice
// run` chose for it; and, where nobody resolved the setting `gpus` yet, of that.
namespace cuslice {

// True if `gpus` is to be resolved here, which takes NVML's list of GPUs: under LD_PRELOAD alone, or where the launcher
// found no driver.
bool resolves_gpus(const Settings& settings, const char* const* environment);

// Changes CUDA_VISIBLE_DEVICES if it has to become something else. `gpus`: all of the host's in PCI order, needed only
// if resolves_gpus(). False, with `error`, if the setting fits none of them or not what the variable leaves of them.
//
// For one thread at a time, before the driver's cuInit. Writing to a living process's environment is what a guest
// should not do, so as little as possible is done: nothing where nothing changes, and otherwise one putenv(3) of a line
// that is never freed. Where the variable is set, which is so whenever a program changed it, that allocates nothing and
// replaces one pointer under the C library's lock, so that threads that call getenv meanwhile find the old line or the
// new one.
bool settle_visible_devices(const Settings& settings, std::span<const GpuIdentity> gpus, const char* const* environment,
                            ConfigError& error);

}  // namespace cuslice
