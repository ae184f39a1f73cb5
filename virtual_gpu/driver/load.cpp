// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/load.h"

#include "virtual_gpu/driver/inside_nvml.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/path_buffer.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

constinit void* opened_driver = nullptr;

}  // namespace

bool load_driver(const char* explicit_path, char* text, size_t size, const char** where) {
    void* handle = open_real_library("libcuda.so.1", explicit_path, text, size, where);
    if (!handle)
        return false;
    open_driver_table(object_of(handle));
    opened_driver = handle;
    return true;
}

void* find_in_driver(const char* name) { return opened_driver ? object_of(opened_driver).find(name) : nullptr; }

void* open_nvml(const char* folder, bool first, char* text, size_t size) {
    const InsideNvml inside;  // its constructors may call its functions
    constexpr const char* kName = "libnvidia-ml.so.1";
    PathBuffer beside;
    const char* const path = folder && beside.join(folder, "/", kName) ? beside.text() : nullptr;
    void* handle = path && first ? open_real_library(kName, path, text, size) : nullptr;
    if (!handle)
        handle = open_real_library(kName, nullptr, text, size);
    if (!handle && path && !first)
        handle = open_real_library(kName, path, text, size);
    return handle;
}

void load_nvml(void* handle) { open_nvml_table(object_of(handle)); }

}  // namespace cuslice
