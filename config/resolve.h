// SPDX-License-Identifier: Apache-2.0
// Resolves the settings for one GPU: the strongest source wins whole, per GPU and key; within a source a GPU's own
// value beats the general one; ceilings of the system's file, of its rules and of outer jobs lower the result and
// nothing raises it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/settings.h"

namespace cuslice {

/// How much of a GPU's memory may be used.
struct Amount {
    /// False: nothing limits it; `bytes` then is the GPU's total.
    bool limited = false;
    uint64_t bytes = 0;
    /// Where the limit came from; empty if not limited. Points into the settings.
    std::string_view origin;
    /// Memory that the driver takes for contexts and modules comes on top.
    bool plus_context = false;
};

/// The memory, in bytes, that `settings` give on `gpu`, whose memory is `total_bytes`. Never more than that. Pure.
Amount amount_for(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes);

/// True if a stronger setting answers the same question on every GPU that `entry` is for.
bool is_hidden(const Settings& settings, const Entry& entry);

/// The most that the system's file lets a program of any user's have on `gpu`, in bytes; nothing where it has no
/// ceiling.
std::optional<uint64_t> ceiling_for_all(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes);

/// Bytes to keep free inside the limit for what the driver takes by itself; nothing if they are to be derived (auto).
std::optional<uint64_t> headroom_for(const Settings& settings, const GpuIdentity& gpu);

/// True if a program's static runtime is to be led to a shared one; redirects_libraries: those of libraries as well.
bool redirects_runtime(const Settings& settings);
bool redirects_libraries(const Settings& settings);

/// How memory is cached on a GPU.
struct AllocatorChoice {
    AllocatorMode mode = AllocatorMode::direct;
    FreeMode free = FreeMode::strict;
    uint64_t idle_release = 0;  // milliseconds; 0: never
    /// Where the mode came from; empty if it is the default. Points into the settings.
    std::string_view origin;
};
AllocatorChoice allocator_for(const Settings& settings, const GpuIdentity& gpu);
/// True if the settings give any GPU a mode other than direct, whether or not the machine has that GPU.
bool chooses_cache(const Settings& settings);

bool admits_at_first_context(const Settings& settings);

/// Bytes that the group may have on `gpu`; nothing if that is not set.
std::optional<uint64_t> group_limit_for(const Settings& settings, const GpuIdentity& gpu);

/// The entry that holds for `key` on `gpu`; nullptr if none is set. fraction and limit answer for each other.
const Entry* find(const Settings& settings, Key key, const GpuIdentity& gpu);
/// The same for a key that is not per GPU.
const Entry* find(const Settings& settings, Key key);
/// True if a key that is not per GPU is set, to something else than no.
bool is_on(const Settings& settings, Key key);
/// The ceiling of `key` that `source` sets on `gpu`, the system's file, a rule or the cgroup; nullptr if there is none.
/// All hold.
const Entry* find_ceiling(const Settings& settings, Key key, Source source, const GpuIdentity& gpu);

/// Bytes that outer job `number` may have on `gpu`, 0 being the nearest job around this process's own; nothing where
/// that is not known.
std::optional<uint64_t> outer_limit_for(const Settings& settings, unsigned number, const GpuIdentity& gpu,
                                        uint64_t total_bytes);

/// The most that a rule has processes share on one GPU.
struct SharedLimit {
    uint64_t bytes = 0;
    std::string_view origin;
};

/// The limit that processes share on `gpu` by a rule of the system, however little of it this one asks for; nothing
/// where no rule has them share anything there.
std::optional<SharedLimit> shared_limit_for(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes);

/// A job's share of a GPU's time, in percent.
struct TimeShare {
    /// Among those who want time.
    uint32_t weight = 0;
    /// At most this much of all time; at least the weight.
    uint32_t cap = 0;
    /// Where the weight came from. Points into the settings.
    std::string_view origin;
};

/// The share that `settings` give on `gpu`, within the rule's; nothing where neither asks for one.
std::optional<TimeShare> share_for(const Settings& settings, const GpuIdentity& gpu);
/// True if any GPU has a share, whether or not the machine has that GPU.
bool shares_time(const Settings& settings);
/// Mean length of a turn, in nanoseconds.
uint64_t share_quantum_of(const Settings& settings);

/// Where the host's programs write down what they hold. Where a rule has processes share, the system alone says so. A
/// fake GPU's is with its books: `fake_folder` is CUSLICE_FAKE_DIR, or empty.
FixedText<512> sharing_folder(const Settings& settings, std::string_view fake_folder);

/// The file that allocations are to be written to; empty if none is.
std::string_view record_file(const Settings& settings);

/// How much to say, and where; warn to stderr if nothing is set.
LogSetting log_for(const Settings& settings);

/// Checks the settings against the GPUs that there are: a UUID prefix that fits two, two values of one source for one
/// GPU, and, if `gpus` are all GPUs of the machine, a GPU that is not there. Other tools' variables may name GPUs that
/// are not there.
bool check_against(const Settings& settings, std::span<const GpuIdentity> gpus, bool all_gpus, ConfigError& error);

}  // namespace cuslice
