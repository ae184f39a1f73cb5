// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>

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

    explicit operator bool() const { return segments_ != nullptr; }
    // The file as the loader names it; empty for the program itself.
    const char* path() const { return path_; }
    // Empty if it has none.
    const char* soname() const { return soname_; }
    bool needs(const char* soname) const;
    bool holds(const void* address) const;
    ModuleRange range() const;
    // The address that the object itself exports under this name, in its default version, or null. Its dependencies
    // are not searched. `gnu_hash`: the name's, by whoever looks for many names of which it is known beforehand.
    void* find(const char* symbol) const { return find(symbol, gnu_hash_of(symbol)); }
    void* find(const char* symbol, std::uint32_t gnu_hash) const;
    static constexpr std::uint32_t gnu_hash_of(const char* name) {
        std::uint32_t hash = 5381;
        for (; *name; name++) hash = hash * 33 + static_cast<unsigned char>(*name);
        return hash;
    }

  private:
    const void* at(std::uintptr_t address) const;
    bool exports(std::uint32_t index, const char* symbol) const;
    void* address_of(std::uint32_t index) const;

    const char* path_ = "";
    const char* soname_ = "";
    const char* strings_ = nullptr;
    const ElfW(Dyn) * dynamic_ = nullptr;
    const ElfW(Sym) * symbols_ = nullptr;
    const std::uint32_t* gnu_hash_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
    const ElfW(Versym) * versions_ = nullptr;
    std::uintptr_t base_ = 0;
    const ElfW(Phdr) * segments_ = nullptr;
    std::size_t segment_count_ = 0;
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
bool folder_of(const void* address, char* folder, std::size_t size);

}  // namespace cuslice
