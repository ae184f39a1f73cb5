// SPDX-License-Identifier: Apache-2.0
/* The runtime's names, in the versions that have them, for callers that are linked to it: each jumps through the table of
   its version. */
    .text
    .set slot11, 0
    .set slot12, 0
    .set slot13, 0

.macro exported symbol, version, node
    .globl \symbol\()_for_\version
    .type \symbol\()_for_\version, @function
    .p2align 4
\symbol\()_for_\version:
    endbr64
    jmp *cuslice_runtime_\version + 8 * slot\version(%rip)
    .size \symbol\()_for_\version, . - \symbol\()_for_\version
    .symver \symbol\()_for_\version, \symbol\node, remove
    .set slot\version, slot\version + 1
.endm

#define EXPORT_none(symbol, version, node)
#define EXPORT_same(symbol, version, node) exported symbol, version, node
#define EXPORT_form(symbol, version, node) exported symbol, version, node
/* The default, for whoever looks a name up without a version: the newest that has it. */
#define NODE_12_none @@libcudart.so.12
#define NODE_12_same @libcudart.so.12
#define NODE_12_form @libcudart.so.12
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13)     \
    EXPORT_##in_11(symbol, 11, @libcudart.so.11.0);      \
    EXPORT_##in_12(symbol, 12, NODE_12_##in_13);         \
    EXPORT_##in_13(symbol, 13, @@libcudart.so.13)
#define CUSLICE_RUNTIME_NEEDED(symbol)
#include "shim/runtime/functions.def"

    .section .note.GNU-stack, "", @progbits
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
