// SPDX-License-Identifier: Apache-2.0
#include "fake/hidden_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace cuslice::fake {
namespace {

struct Symbols {
    ElfW(Sym) * table = nullptr;
    const char* names = nullptr;
    const std::uint32_t* hash = nullptr;  // DT_GNU_HASH, the only place that tells how many there are
};

Symbols symbols_of(const link_map& library) {
    Symbols found;
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; entry++) {
        void* const address = reinterpret_cast<void*>(entry->d_un.d_ptr);  // the loader has made it absolute
        if (entry->d_tag == DT_SYMTAB) found.table = static_cast<ElfW(Sym)*>(address);
        if (entry->d_tag == DT_STRTAB) found.names = static_cast<const char*>(address);
        if (entry->d_tag == DT_GNU_HASH) found.hash = static_cast<const std::uint32_t*>(address);
    }
    return found;
}

/// One past the last symbol: the last of the chain of the highest bucket. Symbols before `first` are in no bucket.
std::uint32_t count_symbols(const std::uint32_t* hash, std::uint32_t& first) {
    const std::uint32_t buckets = hash[0], bloom_words = hash[2];
    first = hash[1];
    const std::uint32_t* bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < buckets; i++) last = bucket[i] > last ? bucket[i] : last;
    if (last < first) return first;
    while ((chain[last - first] & 1) == 0) last++;
    return last + 1;
}

}  // namespace

void hide_symbols(bool (*hidden)(const char* symbol)) {
    Dl_info info{};
    link_map* library = nullptr;
    const void* here = reinterpret_cast<void*>(&hide_symbols);
    if (dladdr1(here, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0) return;
    const Symbols symbols = symbols_of(*library);
    if (symbols.table == nullptr || symbols.names == nullptr || symbols.hash == nullptr) return;
    std::uint32_t first = 0;
    const std::uint32_t end = count_symbols(symbols.hash, first);
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(symbols.table) / page * page;
    const auto size = reinterpret_cast<std::uintptr_t>(symbols.table + end) - from;
    if (mprotect(reinterpret_cast<void*>(from), size, PROT_READ | PROT_WRITE) != 0) return;
    for (std::uint32_t i = first; i < end; i++) {
        ElfW(Sym)& symbol = symbols.table[i];
        if (!hidden(symbols.names + symbol.st_name)) continue;
        symbol.st_shndx = SHN_UNDEF;
        symbol.st_value = 0;
    }
    mprotect(reinterpret_cast<void*>(from), size, PROT_READ);
}

}  // namespace cuslice::fake
