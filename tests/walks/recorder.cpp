// SPDX-License-Identifier: Apache-2.0
// Records a walk: functions that the compiler calls at the beginning and the end of every function of the walked
// library (-finstrument-functions), and one of ours before each of the driver's while a walk is written down.
#include <cstdint>
#include <cstdio>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"

#define NOT_WALKED __attribute__((no_instrument_function))

namespace cuslice {
namespace {

struct Event {
    enum Kind : uint8_t { enter, leave, call_driver } kind;
    uintptr_t what;  // an address, or the index of a driver's function
};
constexpr size_t kMax = 1 << 16;
Event events[kMax];
size_t count = 0;
// True in the thread that began the walk; no other is written down.
constinit thread_local bool walking = false;

NOT_WALKED __attribute__((target("general-regs-only"))) void note(Event::Kind kind, uintptr_t what) {
    if (!walking)
        return;
    if (count < kMax)
        events[count] = {kind, what};
    count++;
}

void* driver_functions[kFunctionCount];

// Where the slot is through which our own code comes to the driver: that of the physical GPUs if a function of
// virtual_gpu/split/ stands in the table.
NOT_WALKED void** driver_place(size_t i) {
    return split_from_slots[i] ? &split_from_slots[i] : &cuslice_driver_slots[i];
}

// Entries that stand before the driver's functions, whatever the types of those: each pushes its number and goes on
// here, and from here to the driver with every register and the stack as they were.
extern "C" {
extern const char walk_driver_entries[] __attribute__((visibility("hidden")));
// No register of floating point is saved, so none is used.
NOT_WALKED __attribute__((visibility("hidden"), target("general-regs-only"))) void* walk_driver(size_t i) {
    note(Event::call_driver, i);
    return driver_functions[i];
}
}
constexpr size_t kEntries = 1024, kEntrySize = 16;
static_assert(kFunctionCount <= kEntries);
#if defined(__x86_64__)
asm(R"(
    .pushsection .text
    .hidden walk_driver_entries
    .globl walk_driver_entries
    .balign 16
walk_driver_entries:
    .set number, 0
    .rept 1024
    .balign 16
    push $number
    jmp 1f
    .set number, number + 1
    .endr
1:  push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    push %r10
    push %r11
    mov 72(%rsp), %rdi
    sub $8, %rsp
    call walk_driver
    add $8, %rsp
    mov %rax, 72(%rsp)
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    ret
    .popsection
)");
#elif defined(__aarch64__)
asm(R"(
    .pushsection .text
    .hidden walk_driver_entries
    .globl walk_driver_entries
    .balign 16
walk_driver_entries:
    .set number, 0
    .rept 1024
    .balign 16
    mov w9, #number
    b 1f
    .set number, number + 1
    .endr
1:  stp x29, x30, [sp, #-96]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    uxtw x0, w9
    bl walk_driver
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp x29, x30, [sp], #96
    br x16
    .popsection
)");
#endif

}  // namespace
}  // namespace cuslice

extern "C" {

NOT_WALKED void __cyg_profile_func_enter(void* function, void*) {
    cuslice::note(cuslice::Event::enter, reinterpret_cast<uintptr_t>(function));
}
NOT_WALKED void __cyg_profile_func_exit(void* function, void*) {
    cuslice::note(cuslice::Event::leave, reinterpret_cast<uintptr_t>(function));
}

// From here on, the calling thread's calls are written down.
NOT_WALKED __attribute__((visibility("default"))) void walk_begin() {
    using namespace cuslice;
    for (size_t i = 0; i < kFunctionCount; i++) {
        driver_slot(i);  // so that none is looked up on the way
        void** const place = driver_place(i);
        driver_functions[i] = *place;
        if (*place)
            *place = const_cast<char*>(walk_driver_entries + i * kEntrySize);
    }
    walking = true;
}

// Ends the walk and prints it: "enter OFFSET", with the offset in the library's file, "leave", "driver NAME". False if
// it was too long.
NOT_WALKED __attribute__((visibility("default"))) bool walk_end() {
    using namespace cuslice;
    walking = false;
    extern const char __ehdr_start __attribute__((visibility("hidden")));
    for (size_t i = 0; i < count && i < kMax; i++) {
        const Event& event = events[i];
        if (event.kind == Event::enter)
            std::printf("enter %zx\n", event.what - reinterpret_cast<uintptr_t>(&__ehdr_start));
        else if (event.kind == Event::call_driver)
            std::printf("driver %s\n", kFunctions[event.what].symbol);
        else
            std::printf("leave\n");
    }
    return count <= kMax;
}
}
