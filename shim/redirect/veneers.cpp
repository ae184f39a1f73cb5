// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/veneers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace cuslice {

namespace {

#if defined(__x86_64__)
constexpr uintptr_t kReach = uintptr_t{1} << 31;
// jmp *0(%rip), and the address behind it.
void write_jump(uint8_t* at, void* target) {
    constexpr uint8_t kCode[] = {0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(at, kCode, sizeof kCode);
    std::memcpy(at + sizeof kCode, &target, sizeof target);
}
#else
constexpr uintptr_t kReach = uintptr_t{1} << 27;
// ldr x16, .+8; br x16, and the address behind them.
void write_jump(uint8_t* at, void* target) {
    constexpr uint32_t kCode[] = {0x58000050, 0xd61f0200};
    std::memcpy(at, kCode, sizeof kCode);
    std::memcpy(at + sizeof kCode, &target, sizeof target);
}
#endif

constexpr uintptr_t kStep = uintptr_t{1} << 20;

}  // namespace

bool Veneers::map_at(uintptr_t address, size_t bytes) {
    // Older kernels take the address for a wish, and map elsewhere if something is there.
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
    void* const got = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (got == reinterpret_cast<void*>(address)) {
        begin_ = address;
        bytes_ = bytes;
        return true;
    }
    munmap(got, bytes);
    return false;
}

// Before the program, if there is room: behind it the heap grows.
bool Veneers::map_near(const AddressRange& program, size_t bytes) {
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t first = program.begin / page * page;
    const uintptr_t lowest = program.end > kReach ? program.end - kReach : 0;
    for (uintptr_t gap = bytes; first > gap && first - gap > lowest; gap += kStep)
        if (map_at((first - gap) / page * page, bytes))
            return true;
    const uintptr_t highest = program.begin + kReach - bytes;
    const uintptr_t last = program.end / page * page + page;
    // The far end first, for the heap's sake.
    for (uintptr_t at = highest / page * page; at > last; at -= kStep)
        if (map_at(at, bytes))
            return true;
    return false;
}

bool Veneers::make(const AddressRange& program, std::span<const Redirection> redirections) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (redirections.size() * kBytes + page - 1) / page * page;
    if (!map_near(program, bytes))
        return false;
    auto* at = reinterpret_cast<uint8_t*>(begin_);
    for (const Redirection& one : redirections) {
        write_jump(at, one.to);
        at += kBytes;
    }
    __builtin___clear_cache(reinterpret_cast<char*>(begin_), reinterpret_cast<char*>(begin_ + bytes));
    if (mprotect(reinterpret_cast<void*>(begin_), bytes, PROT_READ | PROT_EXEC) == 0)
        return true;
    remove();
    return false;
}

void Veneers::remove() {
    munmap(reinterpret_cast<void*>(begin_), bytes_);
    begin_ = 0;
    bytes_ = 0;
}

}  // namespace cuslice
