// SPDX-License-Identifier: Apache-2.0
/* What a program gets that opens the runtime by dlopen: these names before the runtime's own, which this library needs. Built
   once a version, CUSLICE_VERSION. */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TABLE JOIN(cuslice_runtime_, CUSLICE_VERSION)

#include "shim/stub_aarch64.inc"

    .text
    .set slot, 0
.macro exported symbol
    .globl \symbol
    .type \symbol, %function
    .p2align 4
\symbol:
    hint #34                                /* bti c */
    adrp x16, :got:TABLE
    ldr x16, [x16, :got_lo12:TABLE]
    ldr x16, [x16, #(8 * slot)]
    br x16
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

    object_notes
