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

    object_notes
