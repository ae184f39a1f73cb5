// SPDX-License-Identifier: Apache-2.0
// The functions that a compiler calls for atomic operations, and for loads and stores, in code that it builds with
// -fsanitize=thread (gcc/sanitizer.def, compiler-rt's tsan_interface_atomic.h): here they are places where another
// thread may go on. ThreadSanitizer itself isn't there.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/interleave/steps.h"

using cuslice::tests::before_access;
using cuslice::tests::before_step;

// An operation of which the word before is the answer.
#define CUSLICE_FETCHES(bits, name, operation)                                                \
    Word##bits __tsan_atomic##bits##_##name(volatile Word##bits* at, Word##bits value, int) { \
        before_step();                                                                        \
        return operation(at, value, __ATOMIC_SEQ_CST);                                        \
    }
#define CUSLICE_COMPARES(bits, name)                                                                                 \
    bool __tsan_atomic##bits##_compare_exchange_##name(volatile Word##bits* at, Word##bits* known, Word##bits value, \
                                                       int, int) {                                                   \
        before_step();                                                                                               \
        return __atomic_compare_exchange_n(at, known, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    }
#define CUSLICE_ATOMICS(bits)                                                                                          \
    using Word##bits = uint##bits##_t;                                                                                 \
    Word##bits __tsan_atomic##bits##_load(const volatile Word##bits* at, int) {                                        \
        before_step();                                                                                                 \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                  \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile Word##bits* at, Word##bits value, int) {                                 \
        before_step();                                                                                                 \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                 \
    }                                                                                                                  \
    CUSLICE_FETCHES(bits, exchange, __atomic_exchange_n)                                                               \
    CUSLICE_FETCHES(bits, fetch_add, __atomic_fetch_add)                                                               \
    CUSLICE_FETCHES(bits, fetch_sub, __atomic_fetch_sub)                                                               \
    CUSLICE_FETCHES(bits, fetch_and, __atomic_fetch_and)                                                               \
    CUSLICE_FETCHES(bits, fetch_or, __atomic_fetch_or)                                                                 \
    CUSLICE_FETCHES(bits, fetch_xor, __atomic_fetch_xor)                                                               \
    CUSLICE_COMPARES(bits, strong)                                                                                     \
    CUSLICE_COMPARES(bits, weak)                                                                                       \
    Word##bits __tsan_atomic##bits##_compare_exchange_val(volatile Word##bits* at, Word##bits known, Word##bits value, \
                                                          int, int) {                                                  \
        before_step();                                                                                                 \
        __atomic_compare_exchange_n(at, &known, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                     \
        return known;                                                                                                  \
    }

#define CUSLICE_ACCESSES(bytes)                                   \
    void __tsan_read##bytes(void*) { before_access(); }           \
    void __tsan_write##bytes(void*) { before_access(); }          \
    void __tsan_volatile_read##bytes(void*) { before_access(); }  \
    void __tsan_volatile_write##bytes(void*) { before_access(); } \
    void __tsan_unaligned_read##bytes(void*) { before_access(); } \
    void __tsan_unaligned_write##bytes(void*) { before_access(); }

extern "C" {

CUSLICE_ATOMICS(8)
CUSLICE_ATOMICS(16)
CUSLICE_ATOMICS(32)
CUSLICE_ATOMICS(64)

CUSLICE_ACCESSES(1)
CUSLICE_ACCESSES(2)
CUSLICE_ACCESSES(4)
CUSLICE_ACCESSES(8)
CUSLICE_ACCESSES(16)

void __tsan_atomic_thread_fence(int) { before_step(); }
void __tsan_atomic_signal_fence(int) {}
void __tsan_read_range(void*, unsigned long) {}
void __tsan_write_range(void*, unsigned long) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
// clang's, in the C library's place.
void* __tsan_memcpy(void* to, const void* from, size_t bytes) { return std::memcpy(to, from, bytes); }
void* __tsan_memmove(void* to, const void* from, size_t bytes) { return std::memmove(to, from, bytes); }
void* __tsan_memset(void* at, int byte, size_t bytes) { return std::memset(at, byte, bytes); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}

}  // extern "C"
