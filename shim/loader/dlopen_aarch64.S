// SPDX-License-Identifier: Apache-2.0
/* dlopen, interposed. It may exchange the name and then jumps, so that the C library still sees the original caller, whose
   RUNPATH decides where a library is looked for. Written in assembly because a compiler drops the tail call whenever it
   pleases (-O0, sanitizers, coverage). */
#include "shim/stub_aarch64.inc"

    .text
    .globl dlopen
    .type dlopen, %function
    .p2align 4
dlopen:
    .cfi_startproc
    hint #34                                /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    str x1, [sp, #16]                       /* keep the flags */
    mov w2, w1                              /* the flags */
    mov x1, x30                             /* who calls */
    bl cuslice_dlopen_name                  /* x0: the name asked for, and the name to open */
    ldr x1, [sp, #16]
    ldp x29, x30, [sp], #32                 /* x30 is the caller's return address again */
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    adrp x16, cuslice_next_dlopen
    ldr x16, [x16, :lo12:cuslice_next_dlopen]
    br x16
    .cfi_endproc
    .size dlopen, . - dlopen

/* dlmopen likewise, where the name is the second argument. */
    .globl dlmopen
    .type dlmopen, %function
    .p2align 4
dlmopen:
    .cfi_startproc
    hint #34                                /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    stp x0, x2, [sp, #16]                   /* keep the namespace and the flags */
    mov x3, x0                              /* the namespace */
    mov x0, x1                              /* the name asked for */
    mov x1, x30                             /* who calls */
    bl cuslice_dlmopen_name                 /* w2: the flags; x0: the name to open */
    mov x1, x0
    ldp x0, x2, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    adrp x16, cuslice_next_dlmopen
    ldr x16, [x16, :lo12:cuslice_next_dlmopen]
    br x16
    .cfi_endproc
    .size dlmopen, . - dlmopen

    object_notes
