// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/table.h"

#include <new>

#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/nvml_table.h"

extern "C" {
__attribute__((visibility("hidden"))) void* cuslice_driver_slots[cuslice::kFunctionCount] = {};
__attribute__((visibility("hidden"))) void* cuslice_nvml_slots[cuslice::kNvmlFunctionCount] = {};
__attribute__((visibility("hidden"))) void* cuslice_physical_nvml_slots[cuslice::kNvmlFunctionCount] = {};
__attribute__((visibility("hidden"))) constinit cuslice::ModuleRange cuslice_nvml_module{};
constinit thread_local const void* cuslice_inside_nvml = nullptr;
}

namespace cuslice {

namespace {

// Hashes of more than a thousand names, computed by the compiler rather than in each process.
constexpr auto kDriverHashes =
    table_of_functions([](const FunctionRow& row) { return elf_gnu_hash(row.symbol.data()); });
constexpr auto kNvmlHashes = [] {
    std::array<uint32_t, kNvmlFunctionCount> all{};
    for (size_t i = 0; i < all.size(); i++)
        all[i] = elf_gnu_hash(kNvmlFunctionRows[i].data());
    return all;
}();

// A library whose functions are looked up one by one. From its own symbols, so that each address lies in it, whoever
// stands before dlsym.
class Library {
  public:
    constexpr Library() : none_(0) {}
    // Once, and by one thread.
    void open(const LoadedObject& object) {
        new (&object_) LoadedObject(object);
        __atomic_store_n(&open_, true, __ATOMIC_RELEASE);
    }
    void* find(const char* name, uint32_t hash) const {
        return __atomic_load_n(&open_, __ATOMIC_ACQUIRE) ? object_.find(name, hash) : nullptr;
    }

  private:
    union {
        char none_;  // an empty object has pointers, which the loader would have to fill in
        LoadedObject object_;
    };
    bool open_ = false;
};
constinit Library the_driver, the_nvml;
constinit bool nvml_published = false;

// Other threads may be jumping through the table already, and look up the same; hence the atomic store.
void* keep(void** slot, void* found) {
    if (found)
        __atomic_store_n(slot, found, __ATOMIC_RELEASE);
    return found;
}

}  // namespace

void open_driver_table(const LoadedObject& object) { the_driver.open(object); }

void open_nvml_table(const LoadedObject& object) {
    the_nvml.open(object);
    const ModuleRange module = object.range();
    __atomic_store_n(&cuslice_nvml_module.begin, module.begin, __ATOMIC_RELEASE);
    __atomic_store_n(&cuslice_nvml_module.size, module.size, __ATOMIC_RELEASE);
}

void publish_nvml() { __atomic_store_n(&nvml_published, true, __ATOMIC_RELEASE); }

[[gnu::cold, gnu::noinline]] void* look_up_driver_function(size_t function) {
    return keep(&cuslice_driver_slots[function], the_driver.find(kFunctions[function].symbol, kDriverHashes[function]));
}

[[gnu::cold, gnu::noinline]] void* look_up_physical_nvml_function(size_t function) {
    return keep(&cuslice_physical_nvml_slots[function], the_nvml.find(kNvmlFunctions[function], kNvmlHashes[function]));
}

[[gnu::cold, gnu::noinline]] void* look_up_nvml_function(size_t function) {
    if (!__atomic_load_n(&nvml_published, __ATOMIC_ACQUIRE))
        return nullptr;
    return keep(&cuslice_nvml_slots[function], physical_nvml_slot(function));
}

}  // namespace cuslice
