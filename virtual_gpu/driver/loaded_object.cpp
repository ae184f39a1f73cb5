// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/loaded_object.h"

#include <algorithm>
#include <cstring>

#include "virtual_gpu/driver/libc.h"

namespace cuslice {

namespace {

std::uint32_t sysv_hash_of(const char* name) {
    std::uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + static_cast<unsigned char>(*name);
        const std::uint32_t top = hash & 0xf0000000;
        hash = (hash ^ (top >> 24)) & ~top;
    }
    return hash;
}

}  // namespace

LoadedObject::LoadedObject(const dl_phdr_info& info)
    : path_(info.dlpi_name ? info.dlpi_name : ""),
      base_(info.dlpi_addr),
      segments_(info.dlpi_phdr),
      segment_count_(info.dlpi_phnum) {
    for (std::size_t i = segment_count_; i-- > 0;) {
        if (segments_[i].p_type == PT_DYNAMIC)
            dynamic_ = reinterpret_cast<const ElfW(Dyn)*>(base_ + segments_[i].p_vaddr);
        if (segments_[i].p_type == PT_LOAD && segments_[i].p_flags & PF_X) code_ = &segments_[i];
    }
    if (!dynamic_) return;
    const ElfW(Dyn)* named = nullptr;
    for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; entry++) {
        const void* target = at(entry->d_un.d_ptr);
        switch (entry->d_tag) {
            case DT_STRTAB:
                strings_ = static_cast<const char*>(target);
                break;
            case DT_SYMTAB:
                symbols_ = static_cast<const ElfW(Sym)*>(target);
                break;
            case DT_GNU_HASH:
                gnu_hash_ = static_cast<const std::uint32_t*>(target);
                break;
            case DT_HASH:
                hash_ = static_cast<const std::uint32_t*>(target);
                break;
            case DT_VERSYM:
                versions_ = static_cast<const ElfW(Versym)*>(target);
                break;
            case DT_SONAME:
                named = entry;
                break;
            default:
                break;
        }
    }
    if (named && strings_) soname_ = strings_ + named->d_un.d_val;
}

// The loader has added the base to these addresses, but not where it leaves the section as it is in the file (vDSO).
const void* LoadedObject::at(std::uintptr_t address) const {
    return reinterpret_cast<const void*>(address < base_ ? base_ + address : address);
}

bool LoadedObject::needs(const char* soname) const {
    if (!dynamic_ || !strings_) return false;
    for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && std::strcmp(strings_ + entry->d_un.d_val, soname) == 0) return true;
    return false;
}

bool LoadedObject::holds(const void* address) const {
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(address) - base_;
    const auto in = [&](const ElfW(Phdr) & segment) { return place - segment.p_vaddr < segment.p_memsz; };
    if (code_ && in(*code_)) return true;
    for (std::size_t i = 0; i < segment_count_; i++)
        if (segments_[i].p_type == PT_LOAD && in(segments_[i])) return true;
    return false;
}

ModuleRange LoadedObject::range() const {
    std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
    for (std::size_t i = 0; i < segment_count_; i++) {
        if (segments_[i].p_type != PT_LOAD) continue;
        begin = std::min(begin, base_ + segments_[i].p_vaddr);
        end = std::max(end, base_ + segments_[i].p_vaddr + segments_[i].p_memsz);
    }
    return end > begin ? ModuleRange{begin, end - begin} : ModuleRange{};
}

bool LoadedObject::exports(std::uint32_t index, const char* symbol) const {
    constexpr ElfW(Versym) kHidden = 0x8000;  // an older version, which only those get who were linked to it
    const ElfW(Sym)& entry = symbols_[index];
    const auto binding = ELF64_ST_BIND(entry.st_info);
    if (entry.st_shndx == SHN_UNDEF || (binding != STB_GLOBAL && binding != STB_WEAK)) return false;
    if (versions_ && (versions_[index] & kHidden)) return false;
    return std::strcmp(strings_ + entry.st_name, symbol) == 0;
}

// Null for an address outside the object, as an absolute symbol has it.
void* LoadedObject::address_of(std::uint32_t index) const {
    void* const address = reinterpret_cast<void*>(base_ + symbols_[index].st_value);
    if (!holds(address)) return nullptr;
    if (ELF64_ST_TYPE(symbols_[index].st_info) != STT_GNU_IFUNC) return address;
    return reinterpret_cast<void* (*)()>(address)();
}

void* LoadedObject::find(const char* symbol, std::uint32_t hash) const {
    if (!symbols_ || !strings_) return nullptr;
    if (gnu_hash_) {
        const std::uint32_t buckets = gnu_hash_[0], first = gnu_hash_[1], filter_words = gnu_hash_[2];
        const std::uint32_t* const bucket = gnu_hash_ + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(*gnu_hash_));
        const std::uint32_t* const chain = bucket + buckets;
        std::uint32_t index = buckets ? bucket[hash % buckets] : 0;
        if (index < first || index == 0) return nullptr;
        for (;; index++) {
            const std::uint32_t entry = chain[index - first];
            if ((entry | 1) == (hash | 1) && exports(index, symbol)) return address_of(index);
            if (entry & 1) return nullptr;  // the chain's last
        }
    }
    if (hash_ && hash_[0]) {
        const std::uint32_t* const chain = hash_ + 2 + hash_[0];
        for (std::uint32_t index = hash_[2 + sysv_hash_of(symbol) % hash_[0]]; index != STN_UNDEF; index = chain[index])
            if (exports(index, symbol)) return address_of(index);
    }
    return nullptr;
}

bool any_object(bool (*visit)(const LoadedObject&, void*), void* argument) {
    struct Both {
        bool (*visit)(const LoadedObject&, void*);
        void* argument;
    } both{visit, argument};
    const auto call = [](dl_phdr_info* info, std::size_t, void* data) {
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
    const auto visit = [](dl_phdr_info* info, std::size_t, void* argument) {
        auto& search = *static_cast<Wanted*>(argument);
        const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(search.address) - info->dlpi_addr;
        for (std::size_t i = 0; i < info->dlpi_phnum; i++) {
            const ElfW(Phdr)& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD || place - segment.p_vaddr >= segment.p_memsz) continue;
            search.found = LoadedObject(*info);
            return 1;
        }
        return 0;
    };
    dl_iterate_phdr(visit, &wanted);
    return wanted.found;
}

LoadedObject object_of(void* handle) {
    link_map* map = nullptr;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
    return object_at(map->l_ld);  // of each object, its dynamic section alone is known to lie in it
}

bool folder_of(const void* address, char* folder, std::size_t size) {
    // Not dladdr, which looks through all symbols for the one that the address belongs to. But it knows the program's.
    const char* path = object_at(address).path();
    Dl_info info{};
    if (!*path) path = dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
    const char* slash = std::strrchr(path, '/');
    if (!slash || static_cast<std::size_t>(slash - path) >= size) return false;
    std::memcpy(folder, path, static_cast<std::size_t>(slash - path));
    folder[slash - path] = '\0';
    return true;
}

}  // namespace cuslice
