// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/loaded_object.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "virtual_gpu/driver/libdl.h"

namespace cuslice {

namespace {

std::span<const ElfW(Phdr)> segments_of(const dl_phdr_info& info) { return {info.dlpi_phdr, info.dlpi_phnum}; }

}  // namespace

LoadedObject::LoadedObject(const dl_phdr_info& info) : info_(info), object_(elf_object_of(&info)) {
    const auto is_code = [](const ElfW(Phdr) & segment) { return segment.p_type == PT_LOAD && segment.p_flags & PF_X; };
    const auto segments = segments_of(info);
    const auto code = std::find_if(segments.begin(), segments.end(), is_code);
    if (code != segments.end())
        code_ = &*code;
}

bool LoadedObject::needs(const char* soname) const {
    if (!object_.texts)
        return false;
    for (const ElfW(Dyn)* entry = object_.dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED)
            continue;
        if (std::strcmp(elf_object_text(&object_, entry), soname) == 0)
            return true;
    }
    return false;
}

bool LoadedObject::holds(const void* address) const {
    const uintptr_t place = reinterpret_cast<uintptr_t>(address) - object_.base;
    const bool in_code = code_ && place - code_->p_vaddr < code_->p_memsz;
    return in_code || elf_holds(&info_, address);
}

ModuleRange LoadedObject::range() const {
    uintptr_t begin = ~uintptr_t{0}, end = 0;
    for (const ElfW(Phdr) & segment : segments_of(info_)) {
        if (segment.p_type != PT_LOAD)
            continue;
        begin = std::min(begin, object_.base + segment.p_vaddr);
        end = std::max(end, object_.base + segment.p_vaddr + segment.p_memsz);
    }
    return end > begin ? ModuleRange{begin, end - begin} : ModuleRange{};
}

// Null for an address outside the object, as an absolute symbol has it.
void* LoadedObject::find(const char* symbol, uint32_t hash) const {
    const ElfW(Sym)* const found = elf_find_symbol(&object_, symbol, hash);
    void* const address = found ? reinterpret_cast<void*>(object_.base + found->st_value) : nullptr;
    if (!found || !holds(address))
        return nullptr;
    if (ELF64_ST_TYPE(found->st_info) != STT_GNU_IFUNC)
        return address;
    return reinterpret_cast<void* (*)()>(address)();
}

bool any_object(bool (*visit)(const LoadedObject&, void*), void* argument) {
    struct Both {
        bool (*visit)(const LoadedObject&, void*);
        void* argument;
    } both{visit, argument};
    const auto call = [](dl_phdr_info* info, size_t, void* data) {
        const auto& to = *static_cast<Both*>(data);
        return to.visit(LoadedObject(*info), to.argument) ? 1 : 0;
    };
    return dl_iterate_phdr(call, &both) != 0;
}

// Reads the names of the one that it finds alone.
LoadedObject object_at(const void* address) {
    struct Wanted {
        const void* address;
        LoadedObject found;
    } wanted{address, {}};
    const auto visit = [](dl_phdr_info* info, size_t, void* argument) {
        auto& search = *static_cast<Wanted*>(argument);
        if (!elf_holds(info, search.address))
            return 0;
        search.found = LoadedObject(*info);
        return 1;
    };
    dl_iterate_phdr(visit, &wanted);
    return wanted.found;
}

LoadedObject object_of(void* handle) {
    link_map* map = nullptr;
    if (!handle || Libdl::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map)
        return {};
    return object_at(map->l_ld);  // of each object, its dynamic section alone is known to lie in it
}

bool folder_of(const void* address, char* folder, size_t size) {
    // Not dladdr, which looks through all symbols for the one that the address belongs to. But it knows the program's.
    const char* path = object_at(address).path();
    Dl_info info{};
    if (!*path)
        path = Libdl::dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
    const char* slash = std::strrchr(path, '/');
    if (!slash || static_cast<size_t>(slash - path) >= size)
        return false;
    std::memcpy(folder, path, static_cast<size_t>(slash - path));
    folder[slash - path] = '\0';
    return true;
}

}  // namespace cuslice
