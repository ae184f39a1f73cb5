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
.macro other symbol
.endm
#define ONLY_12_12 exported
#define ONLY_13_13 exported
#define ONLY_12_13 other
#define ONLY_13_12 other
#define CUSLICE_RUNTIME(symbol, version) JOIN(ONLY_##version##_, CUSLICE_VERSION) symbol
#define CUSLICE_RUNTIME_BOTH(symbol) exported symbol
#define CUSLICE_RUNTIME_FORMS(symbol) exported symbol
#define CUSLICE_RUNTIME_NEEDED(symbol)
#include "shim/runtime/functions.def"

    .section .note.GNU-stack, "", @progbits
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
