// SPDX-License-Identifier: Apache-2.0
/* dlopen, as programs call it. It may change the name, and jumps, so that the C library still sees the original caller,
   whose RUNPATH decides where a library is looked for: see shim/loader/dlopen_aarch64.S. */
#include "shim/stub_aarch64.inc"

    .text
    .globl dlopen
    .type dlopen, %function
    .globl cuslice_stub_dlopen      /* the stub's own, whichever dlopen programs are bound to */
    .hidden cuslice_stub_dlopen
    .p2align 4
cuslice_stub_dlopen:
dlopen:
    .cfi_startproc
    hint #34                                /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    str x1, [sp, #16]                       /* keep the flags */
    mov x2, x30                             /* who calls */
    bl cuslice_stub_destination             /* x0: where to; x1: the name to open */
    mov x16, x0
    mov x0, x1
    ldr x1, [sp, #16]
    ldp x29, x30, [sp], #32                 /* x30 is the caller's return address again */
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size dlopen, . - dlopen

    object_notes
