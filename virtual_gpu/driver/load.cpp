#include "virtual_gpu/driver/load.h"

#include "virtual_gpu/driver/inside_nvml.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/path_buffer.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

// From the library's own symbols, so that each address lies in it, whoever stands before dlsym. Other threads may be
// jumping through the table already, hence the atomic stores.
template <typename Name>
void fill(void* handle, void** slots, std::size_t count, Name name) {
    const LoadedObject object = object_of(handle);
    for (std::size_t i = 0; i < count; i++) __atomic_store_n(&slots[i], object.find(name(i)), __ATOMIC_RELEASE);
}

}  // namespace

bool load_driver(const char* explicit_path, char* text, std::size_t size, const char** where) {
    void* handle = open_real_library("libcuda.so.1", explicit_path, text, size, where);
    if (!handle) return false;
    fill(handle, cuslice_driver_slots, kFunctionCount, [](std::size_t i) { return kFunctions[i].symbol; });
    return true;
}

bool load_nvml(const char* folder, bool first, char* text, std::size_t size) {
    const InsideNvml inside;  // its constructors may call its functions
    constexpr const char* kName = "libnvidia-ml.so.1";
    PathBuffer beside;
    const char* const path = folder && beside.join(folder, "/", kName) ? beside.text() : nullptr;
    void* handle = path && first ? open_real_library(kName, path, text, size) : nullptr;
    if (!handle) handle = open_real_library(kName, nullptr, text, size);
    if (!handle && path && !first) handle = open_real_library(kName, path, text, size);
    if (!handle) return false;
    fill(handle, cuslice_physical_nvml_slots, kNvmlFunctionCount, [](std::size_t i) { return kNvmlFunctions[i]; });
    const ModuleRange module = range_of_module(handle);
    __atomic_store_n(&cuslice_nvml_module.begin, module.begin, __ATOMIC_RELEASE);
    __atomic_store_n(&cuslice_nvml_module.size, module.size, __ATOMIC_RELEASE);
    return true;
}

void publish_nvml() {
    for (std::size_t i = 0; i < kNvmlFunctionCount; i++)
        __atomic_store_n(&cuslice_nvml_slots[i], cuslice_physical_nvml_slots[i], __ATOMIC_RELEASE);
}

}  // namespace cuslice
