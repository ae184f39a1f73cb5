// SPDX-License-Identifier: Apache-2.0
/* What stands before a function of NVML where a GPU is split: an exchange of the first argument, if it is a virtual GPU's handle,
   for the real library's. No signature is needed: every other argument stays where it is, and nothing that isn't an address in
   our array of virtual GPUs is touched. x9 to x17 belong to nobody at a call. */

    .text
    .type exchange, %function
    .p2align 4
exchange:                                   /* w9: the function's place in the table */
    adrp x16, cuslice_virtual_nvml_devices
    add x16, x16, :lo12:cuslice_virtual_nvml_devices
    sub x16, x0, x16
    cmp x16, #4, lsl #12                    /* 0x4000, the array's size: 64 of 256 bytes each, see nvml.cpp */
    b.hs 1f
    ldr x0, [x0]
1:  adrp x16, cuslice_physical_nvml_slots
    add x16, x16, :lo12:cuslice_physical_nvml_slots
    add x16, x16, w9, uxtw #3
    ldar x16, [x16]
    br x16
    .size exchange, . - exchange

/* One for each function, 16 bytes each, in the order of the table. */
    .globl cuslice_nvml_exchanges
    .hidden cuslice_nvml_exchanges
    .type cuslice_nvml_exchanges, %function
    .p2align 4
cuslice_nvml_exchanges:
    .set slot, 0
.macro exchanging
    .p2align 4
    hint #34
    mov w9, #slot
    b exchange
    .set slot, slot + 1
.endm
#define CUSLICE_NVML_FUNCTION(name, split) exchanging
#include "virtual_gpu/driver/nvml_functions.def"
    .size cuslice_nvml_exchanges, . - cuslice_nvml_exchanges

/* This object keeps the promise of branch targets (BTI) and needs no executable stack. */
    .section .note.GNU-stack, "", %progbits
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000000, 4, 1, 0
