// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "config/config_error.h"
#include "config/settings.h"
#include "config/visible.h"

// Choosing and ordering GPUs is CUDA_VISIBLE_DEVICES' work. What is left to do in the program's own process is to make
// UUIDs of it before the driver reads it: of indices that the program set itself, which count in the list that `cuslice
// run` chose for it; and, where nobody resolved the setting `gpus` yet, of that.
//
// Where GPUs are split (splits_any) the variable is not the driver's: what the program sets selects among the virtual
// GPUs, and the driver reads a list of its own.
namespace cuslice {

// True if `gpus` is to be resolved here, which takes NVML's list of GPUs: under LD_PRELOAD alone, or where the launcher
// found no driver.
bool resolves_gpus(const Settings& settings, const char* const* environment);

// The new value of CUDA_VISIBLE_DEVICES, where it has to change.
//
// Writing to a living process's environment is what a preloaded library
// should not do, so as little as possible is done: nothing where nothing changes, and otherwise one putenv(3) of a line
// that is never freed. Where the variable is set, which is so whenever a program changed it, that allocates nothing and
// replaces one pointer under the C library's lock, so that threads that call getenv meanwhile find the old line or the
// new one. Where GPUs are split nothing is changed: see below.
class VisibleDevices {
  public:
    // `gpus`: all of the host's in PCI order, needed only if resolves_gpus(). Asks NVML, changes nothing. False, with
    // `error`, if the setting fits none of the GPUs or not what the variable leaves of them.
    bool decide(const Settings& settings, std::span<const GpuIdentity> gpus, const char* const* environment,
                ConfigError& error);

    // Changes the variable, if that was decided, before the driver's cuInit. For one thread at a time. False, and
    // nothing is changed, if it is another line by now than the one that was decided upon.
    bool apply();

  private:
    const char* before_ = nullptr;  // the line that was there
    bool change_ = false;
    VisibleText list_;
};

// Where GPUs are split, what CUDA_VISIBLE_DEVICES has to be while the driver's cuInit runs: *set and `list`, the UUIDs
// of the physical GPUs that `cuslice run` chose, or that `gpus` names where it is still to be resolved; or not *set,
// and the driver is to find no such variable. What the program has in it does not bound the list: that is of virtual
// GPUs. `gpus` and the return value as for VisibleDevices::decide. Changes nothing.
bool physical_list(const Settings& settings, std::span<const GpuIdentity> gpus, const char* const* environment,
                   VisibleText& list, bool* set, ConfigError& error);

// The driver's CUDA_VISIBLE_DEVICES in the environment, from construction to destruction: for the time of its cuInit,
// which alone reads it. Then the environment has again what the program had put there, to the very pointer, unless the
// program has changed it meanwhile. One at a time.
//
// Nothing but the environment tells a driver which GPUs to bring up, so the preloaded library has to write there after
// all. What it means for others: a thread that calls getenv("CUDA_VISIBLE_DEVICES") during cuInit may see the list of
// physical GPUs, and so does a process that is forked then. Where the program has the variable and the driver needs
// another one, a pointer is replaced and put back, under the C library's lock; a getenv meanwhile finds one line or the
// other. Where the program has none (as under `cuslice run`), a line is added at the end and removed from there: the C
// library may take a new array of pointers for it, as for any setenv. Only where the program has the variable and the
// driver must not (LD_PRELOAD alone, without `gpus`), the lines behind it move up by one, and a thread that walks over
// them at that moment may miss one; getenv is not safe against that in any program that calls unsetenv.
class VisibleDuringInit {
  public:
    VisibleDuringInit(std::string_view list, bool set);
    ~VisibleDuringInit();
    VisibleDuringInit(const VisibleDuringInit&) = delete;
    VisibleDuringInit& operator=(const VisibleDuringInit&) = delete;

  private:
    char* before_ = nullptr;  // the program's line; none if it has not set it
    char* during_ = nullptr;  // ours; none if it is not to be there
    bool changed_ = false;
};

}  // namespace cuslice
