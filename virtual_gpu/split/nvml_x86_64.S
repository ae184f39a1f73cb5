// SPDX-License-Identifier: Apache-2.0
/* What stands before a function of NVML where a GPU is split: an exchange of the first argument, if it is a virtual GPU's handle,
   for the real library's. No signature is needed: every other argument stays where it is, and nothing that isn't an address in
   our array of virtual GPUs is touched. r10 and r11 belong to nobody at a call. */

    .text
    .type exchange, @function
    .p2align 4
exchange:
    leaq cuslice_virtual_nvml_devices(%rip), %r10
    negq %r10
    addq %rdi, %r10
    cmpq $0x4000, %r10          /* the array's size: 64 of 256 bytes each, see nvml.cpp */
    jae 1f
    movq (%rdi), %rdi
1:  leaq cuslice_physical_nvml_slots(%rip), %r10
    jmp *(%r10, %r11, 8)
    .size exchange, . - exchange

/* One for each function, 16 bytes each, in the order of the table. */
    .globl cuslice_nvml_exchanges
    .hidden cuslice_nvml_exchanges
    .type cuslice_nvml_exchanges, @function
    .p2align 4
cuslice_nvml_exchanges:
    .set slot, 0
.macro exchanging
    .p2align 4
    endbr64
    movl $slot, %r11d
    jmp exchange
    .set slot, slot + 1
.endm
#define CUSLICE_NVML_FUNCTION(name, split) exchanging
#include "virtual_gpu/driver/nvml_functions.def"
    .size cuslice_nvml_exchanges, . - cuslice_nvml_exchanges

/* This object keeps CET's promises (IBT, SHSTK) and needs no executable stack. */
    .section .note.GNU-stack, "", @progbits
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
