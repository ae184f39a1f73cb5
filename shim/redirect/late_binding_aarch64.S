// SPDX-License-Identifier: Apache-2.0
// Keeps the registers of a call's arguments while the call's target is found. x8 is where a large result goes, x18 the
// platform's and not touched.
        .section .note.GNU-stack, "", %progbits
        .text
        .globl cuslice_redirect_first_call
        .type cuslice_redirect_first_call, %function
cuslice_redirect_first_call:
        .cfi_startproc
        stp     x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset x29, -224
        .cfi_offset x30, -216
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        mov     x0, x17
        bl      cuslice_redirect_bind
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldr     x8, [sp, #80]
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     x29, x30, [sp], #224
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size cuslice_redirect_first_call, . - cuslice_redirect_first_call
