// SPDX-License-Identifier: Apache-2.0
#include "fake/hidden_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "elf/object.h"

namespace cuslice::fake {
namespace {

/// One past the last symbol: the last of the chain of the highest bucket. Symbols before `first` are in no bucket.
uint32_t count_symbols(const uint32_t* hash, uint32_t& first) {
    const uint32_t buckets = hash[0], bloom_words = hash[2];
    first = hash[1];
    const uint32_t* bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return first;
    while ((chain[last - first] & 1) == 0)
        last++;
    return last + 1;
}

}  // namespace

void hide_symbols(bool (*hidden)(const char* symbol)) {
    Dl_info info{};
    link_map* library = nullptr;
    const void* here = reinterpret_cast<void*>(&hide_symbols);
    if (dladdr1(here, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0)
        return;
    const elf_object object = elf_object_at(library->l_addr, library->l_ld);
    if (object.symbols == nullptr || object.texts == nullptr || object.gnu_hash == nullptr)
        return;
    uint32_t first = 0;
    const uint32_t end = count_symbols(object.gnu_hash, first);  // the only place that tells how many there are
    auto* const table = const_cast<ElfW(Sym)*>(object.symbols);
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<uintptr_t>(table) / page * page;
    const auto size = reinterpret_cast<uintptr_t>(table + end) - from;
    if (mprotect(reinterpret_cast<void*>(from), size, PROT_READ | PROT_WRITE) != 0)
        return;
    for (uint32_t i = first; i < end; i++) {
        ElfW(Sym)& symbol = table[i];
        if (!hidden(object.texts + symbol.st_name))
            continue;
        symbol.st_shndx = SHN_UNDEF;
        symbol.st_value = 0;
    }
    mprotect(reinterpret_cast<void*>(from), size, PROT_READ);
}

}  // namespace cuslice::fake
