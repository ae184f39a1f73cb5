// SPDX-License-Identifier: Apache-2.0
// Operations that the compiler has no portable word for, on x86_64 and aarch64, which cuslice is built for.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuslice {

/// Adds to a count that this thread alone writes; what other threads read is the count before or after, and with the
/// latter whatever this thread did before. Not an atomic exchange. One instruction on x86_64, where the compiler makes
/// three of a load, an addition and a store.
inline void add_alone(std::atomic<uint64_t>& count, uint64_t more) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // Its number alone: clang takes no class for an operand in memory.
    auto& number = reinterpret_cast<uint64_t&>(count);
    asm volatile("addq %1, %0" : "+m"(number) : "er"(more) : "cc", "memory");
#else
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_release);
#endif
}

#if defined(__x86_64__)

/// Another thread's turn, where two share a core: for loops that spin.
inline void spin_pause() { __builtin_ia32_pause(); }

/// Orders this thread's earlier stores before its later ones, for other processes too. x86_64 does so by itself.
inline void store_fence() { asm volatile("" ::: "memory"); }

/// The address of the thread's control block: another one for each thread, without a call. Costs what a constant costs.
inline uintptr_t own_thread() {
    uintptr_t self;
    asm("movq %%fs:0, %0" : "=r"(self));
    return self;
}

/// A system call with two arguments, past whatever stands in the C library's place. The answer is the kernel's: a
/// negative errno, errno itself stays.
inline long system_call(long number, long first, void* second) {
    long result = number;
    asm volatile("syscall" : "+a"(result) : "D"(first), "S"(second) : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

inline void spin_pause() { asm volatile("yield"); }

inline void store_fence() { asm volatile("dmb ishst" ::: "memory"); }

inline uintptr_t own_thread() {
    uintptr_t self;
    asm("mrs %0, tpidr_el0" : "=r"(self));
    return self;
}

inline long system_call(long number, long first, void* second) {
    register long kernel_number asm("x8") = number;
    register long result asm("x0") = first;
    register void* argument asm("x1") = second;
    asm volatile("svc 0" : "+r"(result) : "r"(kernel_number), "r"(argument) : "memory");
    return result;
}

#endif

}  // namespace cuslice
