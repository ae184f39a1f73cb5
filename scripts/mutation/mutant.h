// SPDX-License-Identifier: Apache-2.0
// The mutant that is active in this process, and those that it has reached. mutation/tree.py includes this file in the
// sources that it mutates, with CUSLICE_MUTANTS for the file that all of it is read from and noted in.
//
// The code runs wherever the product's runs: in signal handlers, between fork and exec, in tests of a kernel without
// memory, and beside tests that replace functions of the C library. So it calls the kernel by itself, and leaves errno
// alone.
#pragma once

namespace cuslice_mutants {

// A file of slots, one for each test that runs at the same time: the number of the mutant that is active, 0 for none,
// and from kReached on a byte for each mutant, 1 if it was reached. The slot of a process is its limit for core files
// in bytes, which its children inherit whatever becomes of their environment; so small a core is never written.
constexpr unsigned long kSlots = 16, kSlot = 4096, kReached = 8;

inline unsigned char none[kSlot];  // without a slot
inline unsigned char* slot;

#if defined(__aarch64__)
constexpr long kOpenAt = 56, kClose = 57, kMmap = 222, kPrlimit = 261;

inline long call_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    register long x5 asm("x5") = f;
    asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
constexpr long kOpenAt = 257, kClose = 3, kMmap = 9, kPrlimit = 302;

inline long call_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "+a"(number)
                 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return number;
}
#endif

// Two threads may both find it; one of the two mappings is then left over.
[[gnu::noinline, gnu::cold]] inline unsigned char* find_slot() noexcept {
    constexpr long kHere = -100;  // AT_FDCWD
    constexpr long kCore = 4, kReadWriteCloseOnExec = 02000002, kReadWrite = 3, kShared = 1;
    unsigned char* found = none;
    unsigned long limits[2] = {};
    call_kernel(kPrlimit, 0, kCore, 0, reinterpret_cast<long>(limits), 0, 0);
    if (limits[0] >= 1 && limits[0] < kSlots) {
        const long file =
            call_kernel(kOpenAt, kHere, reinterpret_cast<long>(CUSLICE_MUTANTS), kReadWriteCloseOnExec, 0, 0, 0);
        if (file >= 0) {
            const long at =
                call_kernel(kMmap, 0, kSlot, kReadWrite, kShared, file, static_cast<long>(limits[0] * kSlot));
            if (at > 0 || at < -4095)
                found = reinterpret_cast<unsigned char*>(at);
            call_kernel(kClose, file, 0, 0, 0, 0, 0);
        }
    }
    __atomic_store_n(&slot, found, __ATOMIC_RELEASE);
    return found;
}

template <int N>
[[gnu::always_inline]] inline bool is_active() noexcept {
    static_assert(N > 0 && N < static_cast<int>(kSlot - kReached));
    // The built files say which mutants can be active in them: what the compiler has computed can't.
    asm volatile(".pushsection .cuslice_mutants,\"\",@progbits\n\t.long %c0\n\t.popsection" : : "i"(N));
    unsigned char* mine = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!mine, 0))
        mine = find_slot();
    if (!mine[kReached + N])
        mine[kReached + N] = 1;
    return *reinterpret_cast<const volatile int*>(mine) == N;
}

}  // namespace cuslice_mutants

/// True if mutant N is active. None is in what the compiler computes.
template <int N>
constexpr bool cuslice_mutant() noexcept {
    if (__builtin_is_constant_evaluated())
        return false;
    return cuslice_mutants::is_active<N>();
}

// Warnings about a mutant are none of its mistakes.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wdangling-else"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#pragma GCC diagnostic ignored "-Wnarrowing"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Waddress"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-overflow"
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Wreturn-local-addr"
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#pragma GCC diagnostic ignored "-Wzero-length-bounds"
#pragma GCC diagnostic ignored "-Wdeprecated-enum-enum-conversion"
#pragma GCC diagnostic ignored "-Wenum-compare"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wshift-count-overflow"
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
#pragma GCC diagnostic ignored "-Wclass-memaccess"
