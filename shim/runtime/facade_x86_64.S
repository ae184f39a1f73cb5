// SPDX-License-Identifier: Apache-2.0
/* What a program gets that opens the runtime by dlopen: these names before the runtime's own, which this library needs. Built
   once a version, CUSLICE_VERSION. */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TABLE JOIN(cuslice_runtime_, CUSLICE_VERSION)

    .text
    .set slot, 0
.macro exported symbol
    .globl \symbol
    .type \symbol, @function
    .p2align 4
\symbol:
    endbr64
    movq TABLE@GOTPCREL(%rip), %r11
    jmp *8 * slot(%r11)
    .size \symbol, . - \symbol
    .set slot, slot + 1
.endm
#define EXPORT_none(symbol)
#define EXPORT_same(symbol) exported symbol
#define EXPORT_form(symbol) exported symbol
#if CUSLICE_VERSION == 11
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) EXPORT_##in_11(symbol)
#elif CUSLICE_VERSION == 12
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) EXPORT_##in_12(symbol)
#else
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) EXPORT_##in_13(symbol)
#endif
#define CUSLICE_RUNTIME_NEEDED(symbol)
#include "shim/runtime/functions.def"

    .section .note.GNU-stack, "", @progbits
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
