#include "virtual_gpu/driver/module_range.h"

#include <algorithm>

#include "virtual_gpu/driver/libc.h"

namespace cuslice {

// The module's own program headers, which its first segment begins with, tell where its segments are.
ModuleRange range_of_module(void* handle) {
    link_map* map = nullptr;
    Dl_info info{};
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !dladdr(map->l_ld, &info)) return {};
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
    const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
    std::uintptr_t end = 0;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD) end = std::max(end, map->l_addr + segments[i].p_vaddr + segments[i].p_memsz);
    return {base, end > base ? end - base : 0};
}

}  // namespace cuslice
