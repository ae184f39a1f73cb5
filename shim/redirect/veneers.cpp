// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/veneers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace cuslice {

namespace {

#if defined(__x86_64__)
constexpr uintptr_t kReach = uintptr_t{1} << 31;

constexpr uint8_t kJump[] = {0xff, 0x25}, kLoadFirst[] = {0x48, 0x8b, 0x3d}, kAddress[] = {0x4c, 0x8d, 0x1d};

// jmp *operand; mov operand, %rdi; lea operand, %r11.
uint8_t* put(uint8_t* at, std::span<const uint8_t> instruction, const void* operand) {
    at = std::copy(instruction.begin(), instruction.end(), at);
    const auto distance =
        static_cast<int32_t>(reinterpret_cast<uintptr_t>(operand) - reinterpret_cast<uintptr_t>(at) - sizeof(int32_t));
    std::memcpy(at, &distance, sizeof distance);
    return at + sizeof distance;
}

void write_code(uint8_t* at, const Veneer& veneer) {
    at = put(at, kJump, &veneer.entry);
    at = put(at, kLoadFirst, &veneer.name);
    at = put(at, kJump, &veneer.target);
    at = put(at, kAddress, &veneer);
    put(at, kJump, &veneer.table->stub);
}
#else
constexpr uintptr_t kReach = uintptr_t{1} << 27;

// adr of register 16 or 17, and ldr of another from a place that isn't far.
uint32_t address(const uint8_t* at, const void* operand, unsigned into) {
    const auto distance = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(operand) - reinterpret_cast<uintptr_t>(at));
    return 0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7ffff) << 5 | into;
}
uint32_t load(const uint8_t* at, const void* operand, unsigned into) {
    const auto distance = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(operand) - reinterpret_cast<uintptr_t>(at));
    return 0x58000000 | (distance >> 2 & 0x7ffff) << 5 | into;
}

void write_code(uint8_t* at, const Veneer& veneer) {
    constexpr uint32_t kLoadAcquire = 0xc8dffe10, kJump = 0xd61f0200;  // ldar x16, [x16]; br x16
    const uint32_t code[] = {address(at, &veneer.entry, 16),
                             kLoadAcquire,
                             kJump,
                             load(at + 12, &veneer.name, 0),
                             load(at + 16, &veneer.target, 16),
                             kJump,
                             address(at + 24, &veneer, 17),
                             load(at + 28, &veneer.table->stub, 16),
                             kJump};
    std::memcpy(at, code, sizeof code);
}
#endif

constexpr uintptr_t kStep = uintptr_t{1} << 20;

size_t text_bytes(const char* text) { return std::strlen(text) + 1; }

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

// Before the module, if there is room: behind a program the heap grows.
bool Veneers::map_near(const AddressRange& module, size_t bytes) {
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t first = module.begin / page * page;
    const uintptr_t lowest = module.end > kReach ? module.end - kReach : 0;
    for (uintptr_t gap = bytes; first > gap && first - gap > lowest; gap += kStep)
        if (map_at((first - gap) / page * page, bytes))
            return true;
    const uintptr_t highest = module.begin + kReach - bytes;
    const uintptr_t last = module.end / page * page + page;
    // The far end first, for the heap's sake.
    for (uintptr_t at = highest / page * page; at > last; at -= kStep)
        if (map_at(at, bytes))
            return true;
    return false;
}

bool Veneers::make(const AddressRange& module, std::span<const Redirection> redirections, const LateBinding* late) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const auto whole_pages = [page](size_t bytes) { return (bytes + page - 1) / page * page; };
    size_t data = sizeof(LateTable) + redirections.size() * sizeof(Veneer);
    for (const Redirection& one : redirections)
        data += text_bytes(one.name);
    if (late)
        data += text_bytes(late->module) + text_bytes(late->runtime);
    code_bytes_ = whole_pages(redirections.size() * Veneer::kCodeBytes);
    if (!map_near(module, code_bytes_ + whole_pages(data)))
        return false;
    write(redirections, late);
    __builtin___clear_cache(reinterpret_cast<char*>(begin_), reinterpret_cast<char*>(begin_ + code_bytes_));
    if (mprotect(reinterpret_cast<void*>(begin_), code_bytes_, PROT_READ | PROT_EXEC) == 0) {
        if (!late)
            mprotect(reinterpret_cast<void*>(begin_ + code_bytes_), bytes_ - code_bytes_, PROT_READ);
        return true;
    }
    remove();
    return false;
}

void Veneers::write(std::span<const Redirection> redirections, const LateBinding* late) {
    auto* const table = new (reinterpret_cast<void*>(begin_ + code_bytes_)) LateTable{};
    table->count = redirections.size();
    const std::span<Veneer> all = table->veneers();
    free_text_ = reinterpret_cast<char*>(all.data() + all.size());
    if (late) {
        table->stub = late->stub;
        table->major = late->major;
        table->module = copy(late->module);
        table->runtime = copy(late->runtime);
    }
    for (size_t i = 0; i < all.size(); i++) {
        const Redirection& one = redirections[i];
        auto* const code = reinterpret_cast<uint8_t*>(at(i));
        Veneer* const made = new (&all[i]) Veneer{one.to, copy(one.name), one.to, table, code};
        if (late) {
            made->entry = made->unbound();
        } else if (one.lacking) {
            made->entry = made->with_name();
        }
        write_code(code, *made);
    }
}

const char* Veneers::copy(const char* text) {
    const size_t bytes = text_bytes(text);
    char* const copied = free_text_;
    std::memcpy(copied, text, bytes);
    free_text_ += bytes;
    return copied;
}

uintptr_t Veneers::at(size_t index) const { return begin_ + index * Veneer::kCodeBytes; }

void Veneers::remove() {
    munmap(reinterpret_cast<void*>(begin_), bytes_);
    begin_ = 0;
    bytes_ = 0;
}

}  // namespace cuslice
