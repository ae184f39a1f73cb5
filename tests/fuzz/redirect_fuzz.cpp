// SPDX-License-Identifier: Apache-2.0
// The readers of a library that is being loaded, and of the file of the runtime that is to stand in for its own, with
// anything in their place. The first byte says which one. They must not read outside, and each jump has to lie within
// the code, clear of the others.
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "shim/redirect/object_symbols.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/runtime_file.h"

using namespace cuslice;

namespace {

void expect(bool holds) {
    if (!holds)
        std::abort();
}

// A file in memory.
class File {
  public:
    const char* with(const uint8_t* data, size_t size) {
        expect(ftruncate(descriptor_, 0) == 0);
        expect(pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size));
        return path_.c_str();
    }

  private:
    int descriptor_ = memfd_create("file", MFD_CLOEXEC);
    std::string path_ = "/proc/self/fd/" + std::to_string(descriptor_);
};

File& file() {
    static File one;
    return one;
}

void read_runtime(const uint8_t* data, size_t size) {
    static RuntimeFile runtime;
    if (!runtime.read(file().with(data, size), 13))
        return;
    const SharedRuntime functions = runtime.functions();
    for (const char* name : {"cudaMalloc", "cudaGetDeviceCount", ""})
        functions.find(name, functions.argument);
}

// Has every name of an even length.
void* find(const char* name, void* self) { return std::strlen(name) % 2 == 0 ? self : nullptr; }

void check(const RedirectPlan& plan, const SymbolTable& table) {
    uintptr_t free_from = table.code.begin;
    for (const Redirection& one : plan.all()) {
        expect(one.from >= free_from && table.code.holds(one.from, kJumpBytes));
        free_from = one.from + kJumpBytes;
    }
}

// A library as the loader has mapped it: its first page, and zeros, in which its dynamic section is empty.
constexpr size_t kMapped = size_t{1} << 20, kPage = 4096;

uint8_t* mapped(const uint8_t* data, size_t size) {
    static auto* const memory =
        static_cast<uint8_t*>(mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(memory, 0, kPage);
    std::memcpy(memory, data, std::min(size, kPage));
    return memory;
}

// Address of the dynamic section; 0 for none, or one that isn't behind the first page.
uintptr_t dynamic_section(const uint8_t* memory) {
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(memory);
    for (size_t i = 0; i < header.e_phnum; i++) {
        const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
        if (header.e_phoff > kPage || at + sizeof(Elf64_Phdr) > kPage)
            return 0;
        Elf64_Phdr segment;
        std::memcpy(&segment, memory + at, sizeof segment);
        if (segment.p_type == PT_DYNAMIC)
            return segment.p_vaddr >= kPage && segment.p_vaddr < kMapped - kPage
                       ? reinterpret_cast<uintptr_t>(memory) + segment.p_vaddr / 8 * 8
                       : 0;
    }
    return 0;
}

void read_library(const uint8_t* data, size_t size) {
    static RedirectPlan plan;
    const uint8_t* const memory = mapped(data, size);
    std::string path = file().with(data, size);
    link_map library{};
    library.l_addr = reinterpret_cast<uintptr_t>(memory);
    library.l_ld = reinterpret_cast<ElfW(Dyn)*>(dynamic_section(memory));
    library.l_name = path.data();
    if (!library.l_ld)
        return;
    ObjectSymbols symbols;
    if (symbols.read_library(library) != ObjectSymbols::Found::table)
        return;
    const SymbolTable& table = symbols.table();
    static_runtime_of(table);
    for (void* const lacking : {static_cast<void*>(nullptr), static_cast<void*>(&plan)}) {
        Reason why;
        const bool made = plan.make(table, {"runtime", find, &plan, lacking}, why);
        expect(made != plan.all().empty() && made == why.empty());
        check(plan, table);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        read_runtime(data + 1, size - 1);
    else
        read_library(data + 1, size - 1);
    return 0;
}
