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
void fill(const LoadedObject& object, void** slots, std::size_t count, const std::uint32_t* hashes, Name name) {
    for (std::size_t i = 0; i < count; i++)
        __atomic_store_n(&slots[i], object.find(name(i), hashes[i]), __ATOMIC_RELEASE);
}

// Of more than a thousand names, which need not be worked out in each process.
constexpr std::uint32_t kDriverHashes[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) LoadedObject::gnu_hash_of(#symbol),
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
};
constexpr std::uint32_t kNvmlHashes[] = {
#define CUSLICE_NVML_FUNCTION(name) LoadedObject::gnu_hash_of(#name),
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
};

}  // namespace

bool load_driver(const char* explicit_path, char* text, std::size_t size, const char** where) {
    void* handle = open_real_library("libcuda.so.1", explicit_path, text, size, where);
    if (!handle) return false;
    fill(object_of(handle), cuslice_driver_slots, kFunctionCount, kDriverHashes,
         [](std::size_t i) { return kFunctions[i].symbol; });
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
    const LoadedObject object = object_of(handle);
    fill(object, cuslice_physical_nvml_slots, kNvmlFunctionCount, kNvmlHashes,
         [](std::size_t i) { return kNvmlFunctions[i]; });
    const ModuleRange module = object.range();
    __atomic_store_n(&cuslice_nvml_module.begin, module.begin, __ATOMIC_RELEASE);
    __atomic_store_n(&cuslice_nvml_module.size, module.size, __ATOMIC_RELEASE);
    return true;
}

void publish_nvml() {
    for (std::size_t i = 0; i < kNvmlFunctionCount; i++)
        __atomic_store_n(&cuslice_nvml_slots[i], cuslice_physical_nvml_slots[i], __ATOMIC_RELEASE);
}

}  // namespace cuslice
