// SPDX-License-Identifier: Apache-2.0
/* The runtime's names, in both versions, for callers that are linked to it: each jumps through the table of its version. */
#include "shim/stub_aarch64.inc"

    .text
    .set slot12, 0
    .set slot13, 0

.macro only_12 symbol
    .globl \symbol\()_for_12
    .type \symbol\()_for_12, %function
    .p2align 4
\symbol\()_for_12:
    hint #34                                /* bti c */
    adrp x16, cuslice_runtime_12 + 8 * slot12
    ldr x16, [x16, :lo12:cuslice_runtime_12 + 8 * slot12]
    br x16
    .size \symbol\()_for_12, . - \symbol\()_for_12
    .symver \symbol\()_for_12, \symbol@libcudart.so.12, remove
    .set slot12, slot12 + 1
.endm
.macro only_13 symbol
    .globl \symbol\()_for_13
    .type \symbol\()_for_13, %function
    .p2align 4
\symbol\()_for_13:
    hint #34                                /* bti c */
    adrp x16, cuslice_runtime_13 + 8 * slot13
    ldr x16, [x16, :lo12:cuslice_runtime_13 + 8 * slot13]
    br x16
    .size \symbol\()_for_13, . - \symbol\()_for_13
    .symver \symbol\()_for_13, \symbol@@libcudart.so.13, remove
    .set slot13, slot13 + 1
.endm
.macro both symbol
    only_12 \symbol
    only_13 \symbol
.endm
.macro needed symbol
.endm
#define CUSLICE_RUNTIME(symbol, version) only_##version symbol
#define CUSLICE_RUNTIME_BOTH(symbol) both symbol
#define CUSLICE_RUNTIME_FORMS(symbol) both symbol
#define CUSLICE_RUNTIME_NEEDED(symbol) needed symbol
#include "shim/runtime/functions.def"

    object_notes
