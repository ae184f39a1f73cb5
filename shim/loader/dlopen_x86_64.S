// SPDX-License-Identifier: Apache-2.0
/* dlopen, interposed. It may exchange the name and then jumps, so that the C library still sees the original caller, whose
   RUNPATH decides where a library is looked for. Written in assembly because a compiler drops the tail call whenever it
   pleases (-O0, sanitizers, coverage). */
#include "shim/stub_x86_64.inc"

    .text
    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    pushq %rsi                      /* keep the flags; the stack is a multiple of 16 again */
    .cfi_adjust_cfa_offset 8
    movl %esi, %edx                 /* the flags */
    movq 8(%rsp), %rsi              /* who calls */
    call cuslice_dlopen_name        /* rdi: the name asked for; rax: the name to open */
    popq %rsi
    .cfi_adjust_cfa_offset -8
    movq %rax, %rdi
    jmp *cuslice_next_dlopen(%rip)  /* the caller's return address is on top */
    .cfi_endproc
    .size dlopen, . - dlopen

/* dlmopen likewise, where the name is the second argument. */
    .globl dlmopen
    .type dlmopen, @function
    .p2align 4
dlmopen:
    .cfi_startproc
    endbr64
    pushq %rdi                      /* keep the namespace */
    .cfi_adjust_cfa_offset 8
    pushq %rdx                      /* and the flags */
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp                   /* the stack is a multiple of 16 again */
    .cfi_adjust_cfa_offset 8
    movq %rdi, %rcx                 /* the namespace */
    movq %rsi, %rdi                 /* the name asked for */
    movq 24(%rsp), %rsi             /* who calls */
    call cuslice_dlmopen_name       /* edx: the flags; rax: the name to open */
    movq %rax, %rsi
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *cuslice_next_dlmopen(%rip)
    .cfi_endproc
    .size dlmopen, . - dlmopen

    object_notes
