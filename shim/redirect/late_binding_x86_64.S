// SPDX-License-Identifier: Apache-2.0
// Keeps the registers of a call's arguments while the call's target is found. rax counts the vector registers that a
// variadic call uses; r10 is the static chain's.
        .section .note.GNU-stack, "", %progbits
        .text
        .globl cuslice_redirect_first_call
        .type cuslice_redirect_first_call, %function
cuslice_redirect_first_call:
        .cfi_startproc
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $192, %rsp
        mov     %rdi, (%rsp)
        mov     %rsi, 8(%rsp)
        mov     %rdx, 16(%rsp)
        mov     %rcx, 24(%rsp)
        mov     %r8, 32(%rsp)
        mov     %r9, 40(%rsp)
        mov     %rax, 48(%rsp)
        mov     %r10, 56(%rsp)
        movups  %xmm0, 64(%rsp)
        movups  %xmm1, 80(%rsp)
        movups  %xmm2, 96(%rsp)
        movups  %xmm3, 112(%rsp)
        movups  %xmm4, 128(%rsp)
        movups  %xmm5, 144(%rsp)
        movups  %xmm6, 160(%rsp)
        movups  %xmm7, 176(%rsp)
        mov     %r11, %rdi
        call    cuslice_redirect_bind
        mov     %rax, %r11
        mov     (%rsp), %rdi
        mov     8(%rsp), %rsi
        mov     16(%rsp), %rdx
        mov     24(%rsp), %rcx
        mov     32(%rsp), %r8
        mov     40(%rsp), %r9
        mov     48(%rsp), %rax
        mov     56(%rsp), %r10
        movups  64(%rsp), %xmm0
        movups  80(%rsp), %xmm1
        movups  96(%rsp), %xmm2
        movups  112(%rsp), %xmm3
        movups  128(%rsp), %xmm4
        movups  144(%rsp), %xmm5
        movups  160(%rsp), %xmm6
        movups  176(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 8
        jmp     *%r11
        .cfi_endproc
        .size cuslice_redirect_first_call, . - cuslice_redirect_first_call
