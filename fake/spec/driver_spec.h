// SPDX-License-Identifier: Apache-2.0
#pragma once
// Release and behaviour of the fake machine's driver: the table [driver] of a user's file.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace cuslice::fake {

struct DriverSpec {
    std::string version = "580.95.05";
    std::string cuda;                     // "13.4": of a libcuda that is newer than the release; empty: the release's
    uint64_t init_time = 0;               // nanoseconds that the first cuInit of a process takes
    uint64_t nvml_time = 0;               // nanoseconds that each call of NVML takes
    std::string process_list = "listed";  // listed, empty or unsupported
    int64_t process_id_offset = 0;        // a pid in NVML's lists less the one that the process has for itself
    bool process_memory = true;           // false: NVML lists processes without their memory

    /// 580 of "580.95.05".
    unsigned branch() const;
    /// The CUDA version that the release came with: 13000.
    int release_cuda_version() const;
    /// The CUDA version of libcuda, as cuDriverGetVersion tells it. With NVIDIA's forward compatibility packages it is
    /// newer than the release's.
    int cuda_version() const;
    /// True from release 510 on: NVML's total contains the driver's reserved memory, and nvmlDeviceGetMemoryInfo_v2
    /// tells how much that is.
    bool tells_reserved() const { return branch() >= 510; }
    /// True if NVML lists processes by the host's pids, whatever namespace asks. Later releases list the processes
    /// that are visible in the caller's pid namespace, by their pids there.
    bool lists_hosts_pids() const { return branch() < 545; }
    /// The pid by which NVML lists a process.
    int64_t listed_pid(int64_t pid) const { return lists_hosts_pids() ? pid + process_id_offset : pid; }
};

enum class DriverKeyKind { Version, CudaVersion, Duration, Word, Number, Flag };

struct DriverKey {
    const char* name;
    DriverKeyKind kind;
    std::variant<std::string DriverSpec::*, uint64_t DriverSpec::*, int64_t DriverSpec::*, bool DriverSpec::*> member;
    const char* meaning;
};

/// All keys of [driver], in the order in which the documentation shows them.
const std::vector<DriverKey>& driver_keys();

/// Sets a key of kind Version, CudaVersion, Duration or Word from its text; false, and what would be right in `why`, if
/// it can't be.
bool set_driver_key(const DriverKey& key, const std::string& text, DriverSpec& driver, std::string& why);

}  // namespace cuslice::fake
