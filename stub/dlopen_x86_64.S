// SPDX-License-Identifier: Apache-2.0
/* dlopen, as programs call it. It may change the name, and jumps, so that the C library still sees the original caller,
   whose RUNPATH decides where a library is looked for: see shim/loader/dlopen_x86_64.S. */
#include "shim/stub_x86_64.inc"

    .text
    .globl dlopen
    .type dlopen, @function
    .globl cuslice_stub_dlopen      /* the stub's own, whichever dlopen programs are bound to */
    .hidden cuslice_stub_dlopen
    .p2align 4
cuslice_stub_dlopen:
dlopen:
    .cfi_startproc
    endbr64
    movq (%rsp), %rdx               /* who calls */
    pushq %rsi                      /* keep the flags; the stack is a multiple of 16 again */
    .cfi_adjust_cfa_offset 8
    call cuslice_stub_destination   /* rax: where to; rdx: the name to open */
    popq %rsi
    .cfi_adjust_cfa_offset -8
    movq %rdx, %rdi
    jmp *%rax                       /* the caller's return address is on top */
    .cfi_endproc
    .size dlopen, . - dlopen

    object_notes
