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

    object_notes
