// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVML as any program finds it: dlopen("libnvidia-ml.so.1"). In a process under cuslice its memory figures are the
// slice's and its process list the driver's own; in one without, all figures are the driver's.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuslice::check {

/// The result of nvmlInit, 0 for success; absent if there is no libnvidia-ml.so.1.
std::optional<int> management_status();

/// False if there is no NVML, or it does not start; every figure below is then absent.
bool has_management();

std::string driver_version();

/// Bytes that the process holds on all GPUs together, as nvidia-smi lists it; absent if it is in no list.
std::optional<uint64_t> process_bytes(pid_t pid);
/// The same for the GPU with this UUID.
std::optional<uint64_t> process_bytes(pid_t pid, const char* uuid);

/// Bytes that all processes together hold on all GPUs.
std::optional<uint64_t> used_bytes();

/// Bytes that cuslice counts against this process's limit on a GPU, exactly: NVML's used memory as a process in a
/// slice is shown it. Absent without cuslice.
std::optional<uint64_t> counted_bytes(const char* uuid);

}  // namespace cuslice::check
