// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/code_patch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cuslice {

namespace {

// Pages of code that get a jump. All others stay the file's.
struct Pages {
    uintptr_t begin, end;
    void* address() const { return reinterpret_cast<void*>(begin); }
    size_t bytes() const { return end - begin; }
};

uintptr_t page_bytes() { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }

// A run of redirections whose jumps lie on pages beside each other, and these pages.
struct Run {
    size_t first, count;
    Pages pages;
};

Run run_from(std::span<const Redirection> redirections, size_t first) {
    const uintptr_t page = page_bytes();
    const auto pages_of = [page](const Redirection& one) {
        return Pages{one.from / page * page, (one.from + kJumpBytes + page - 1) / page * page};
    };
    Run run{first, 1, pages_of(redirections[first])};
    for (size_t i = first + 1; i < redirections.size(); i++, run.count++) {
        const Pages next = pages_of(redirections[i]);
        if (next.begin > run.pages.end)
            break;
        run.pages.end = next.end;
    }
    return run;
}

// A jump from one place to another within reach.
void write_jump(uintptr_t from, uintptr_t to) {
#if defined(__x86_64__)
    uint8_t jump[kJumpBytes] = {0xe9};
    const auto distance = static_cast<int32_t>(to - (from + kJumpBytes));
    std::memcpy(jump + 1, &distance, sizeof distance);
#else
    const uint32_t jump = 0x14000000 | ((static_cast<uint32_t>((to - from) >> 2)) & 0x03ffffff);
#endif
    std::memcpy(reinterpret_cast<void*>(from), &jump, kJumpBytes);
}

bool write_run(std::span<const Redirection> redirections, const Run& run, const Veneers& veneers) {
    if (mprotect(run.pages.address(), run.pages.bytes(), PROT_READ | PROT_WRITE) != 0)
        return false;
    for (size_t i = run.first; i < run.first + run.count; i++)
        write_jump(redirections[i].from, veneers.at(i));
    auto* const begin = reinterpret_cast<char*>(run.pages.begin);
    __builtin___clear_cache(begin, begin + run.pages.bytes());
    return mprotect(run.pages.address(), run.pages.bytes(), PROT_READ | PROT_EXEC) == 0;
}

// The file's own pages again. Where a changed page may not be executed, an unchanged one may.
bool restore(const ObjectSymbols& symbols, const Pages& pages) {
    const auto offset = static_cast<off_t>(symbols.offset_of(pages.begin));
    return mmap(pages.address(), pages.bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, symbols.file(),
                offset) != MAP_FAILED;
}

}  // namespace

bool redirect(const ObjectSymbols& symbols, std::span<const Redirection> redirections, const LateBinding* late,
              Veneers& veneers, Reason& why) {
    if (!veneers.make(symbols.table().whole, redirections, late)) {
        why.assign("there is no memory near it that could be executed");
        return false;
    }
    for (size_t at = 0; at < redirections.size();) {
        const Run run = run_from(redirections, at);
        if (write_run(redirections, run, veneers)) {
            at += run.count;
            continue;
        }
        why.assign("the kernel lets nobody change its code (", std::strerror(errno), ")");
        for (size_t undone = 0; undone <= at;) {
            const Run earlier = run_from(redirections, undone);
            restore(symbols, earlier.pages);
            undone += earlier.count;
        }
        veneers.remove();
        return false;
    }
    return true;
}

}  // namespace cuslice
