// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs of the machine and their fields, as NVML tells them to whoever asks: in a slice, the slice's.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice::fake {

/// Stands where NVML has no answer.
inline constexpr std::string_view kNone = "[N/A]";

/// printf's format; at most 255 characters.
template <typename... Types>
std::string format(const char* pattern, Types... values) {
    char line[256];
    std::snprintf(line, sizeof line, pattern, values...);
    return line;
}

struct ListedGpu {
    unsigned index = 0;
    nvmlDevice_t handle = nullptr;
};

/// A process with memory on a GPU.
struct App {
    ListedGpu gpu;
    unsigned pid = 0;
    unsigned long long bytes = 0;
};

struct Value {
    std::string text;
    std::string_view unit;  // "" for what has none
};

/// A field of a query: its names, and what it is.
template <typename Row>
struct Field {
    std::string_view name, alias, unit, meaning;
    Value (*read)(const Row& row);
};

const std::vector<Field<ListedGpu>>& gpu_fields();
const std::vector<Field<App>>& app_fields();

std::string uuid_of(const ListedGpu& gpu);
std::string name_of(const ListedGpu& gpu);
std::string bus_id_of(const ListedGpu& gpu);
std::string driver_version();
/// "13.0"
std::string cuda_version();
/// The command of a process, or kNone.
std::string process_name(unsigned pid);

/// All GPUs, in NVML's order.
std::vector<ListedGpu> all_gpus();
std::vector<App> apps_of(const ListedGpu& gpu);

/// The field of this name or alias; nullptr for none.
template <typename Row>
const Field<Row>* find_field(const std::vector<Field<Row>>& fields, std::string_view name) {
    for (const Field<Row>& field : fields)
        if (field.name == name || (!field.alias.empty() && field.alias == name))
            return &field;
    return nullptr;
}

}  // namespace cuslice::fake
