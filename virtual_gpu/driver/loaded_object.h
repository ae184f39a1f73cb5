// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>

#include "elf/object.h"
#include "virtual_gpu/driver/module_range.h"

namespace cuslice {

// An object of this process as the loader mapped it: its names, what it needs, and the functions that it exports, read
// from its own dynamic section. dlsym can't be trusted with the driver's names: other libraries that stand before CUDA
// programs (HAMi-core, profilers) replace dlsym and answer with functions of their own, which lead back to us.
// Valid as long as the object stays loaded.
class LoadedObject {
  public:
    LoadedObject() = default;
    explicit LoadedObject(const dl_phdr_info& info);

    explicit operator bool() const { return info_.dlpi_phdr != nullptr; }
    // The file as the loader names it; empty for the program itself.
    const char* path() const { return info_.dlpi_name ? info_.dlpi_name : ""; }
    // Empty if it has none.
    const char* soname() const { return object_.soname ? object_.soname : ""; }
    bool needs(const char* soname) const;
    bool holds(const void* address) const;
    ModuleRange range() const;
    // The address that the object itself exports under this name, in its default version, or null. Its dependencies
    // are not searched. `gnu_hash`: the name's, by whoever looks for many names of which it is known beforehand.
    void* find(const char* symbol) const { return find(symbol, elf_gnu_hash(symbol)); }
    void* find(const char* symbol, uint32_t gnu_hash) const;

  private:
    dl_phdr_info info_{};
    elf_object object_{};
    const ElfW(Phdr) * code_ = nullptr;  // the first segment that can be executed: most of what is looked for
};

// Visits the objects of this process in the loader's order: the program, what is preloaded, what they need, what was
// opened since. Ends with the first for which `visit` returns true; true if there was one. The visitor must not load
// or unload anything: the loader's lock is held.
bool any_object(bool (*visit)(const LoadedObject&, void*), void* argument);

template <typename Visit>
bool any_object(Visit visit) {
    return any_object([](const LoadedObject& object, void* own) { return (*static_cast<Visit*>(own))(object); },
                      &visit);
}

// The object that lies at this address, or the one of a dlopen handle; an empty one if there is none.
LoadedObject object_at(const void* address);
LoadedObject object_of(void* handle);

// The folder that holds the module with this address in it, without a final slash. False if the loader doesn't know it.
bool folder_of(const void* address, char* folder, size_t size);

}  // namespace cuslice
