// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/veneers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace cuslice {

namespace {

// Each takes the name into the first argument's register, for a function that wants it, and goes on to the target.
// Both addresses lie behind the code.
#if defined(__x86_64__)
constexpr uintptr_t kReach = uintptr_t{1} << 31;
constexpr uint8_t kWithName[] = {0x48, 0x8b, 0x3d, 0x09, 0, 0, 0,                  // mov .+16(%rip), %rdi
                                 0xff, 0x25, 0x0b, 0,    0, 0, 0xcc, 0xcc, 0xcc};  // jmp *.+24(%rip)
constexpr uint8_t kAlone[] = {0xff, 0x25, 0x12, 0,    0,    0,    0xcc, 0xcc,
                              0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};  // jmp *.+24(%rip)
#else
constexpr uintptr_t kReach = uintptr_t{1} << 27;
constexpr uint32_t kWithName[] = {0x58000080, 0x580000b0, 0xd61f0200,
                                  0xd503201f};                                   // ldr x0, .+16; ldr x16, .+20; br x16
constexpr uint32_t kAlone[] = {0x580000d0, 0xd61f0200, 0xd503201f, 0xd503201f};  // ldr x16, .+24; br x16
#endif

struct Veneer {
    unsigned char code[16];
    const char* name;
    void* target;
};
static_assert(sizeof(Veneer) == Veneers::kBytes);
static_assert(sizeof kWithName == sizeof Veneer::code && sizeof kAlone == sizeof Veneer::code);

void write(Veneer* veneer, const Redirection& one) {
    std::memcpy(veneer->code, one.lacking ? static_cast<const void*>(kWithName) : kAlone, sizeof veneer->code);
    veneer->name = one.name;
    veneer->target = one.to;
}

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
    auto* veneer = reinterpret_cast<Veneer*>(begin_);
    for (const Redirection& one : redirections)
        write(veneer++, one);
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
