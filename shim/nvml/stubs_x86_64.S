// SPDX-License-Identifier: Apache-2.0
/* Every NVML function, exported. All come through one entrance, which tells a program's call from one of NVML's own: NVIDIA's
   library is not linked -Bsymbolic and calls itself through its exported names, of which ours are the first in the loader's
   scope. Such a call goes straight to the real function, whatever we make of a program's:

     - the return address lies in NVML; or
     - this thread is inside a call of ours into NVML (virtual_gpu/driver/inside_nvml.h), for NVML also jumps to its functions
       at the end of others, and leaves the return address of whoever called those.

   A program's call goes to the hook in this folder, if there is one, or through NVML's table. As long as the program has not
   initialised NVML, though cuslice may have for itself, it is answered as a library is that nobody has initialised. r10 and r11 belong to nobody at a
   call. */
#include "shim/stub_x86_64.inc"

    .text
    resolver cuslice_resolve_nvml_stub, cuslice_resolve_nvml
    resolver cuslice_resolve_physical_nvml_stub, cuslice_resolve_physical_nvml
    resolver cuslice_resolve_unstarted_nvml_stub, cuslice_resolve_unstarted_nvml

    .type nvml_entrance, @function
    .p2align 4
nvml_entrance:                                          /* r11: the function's place in the table */
    movq (%rsp), %r10
    subq cuslice_nvml_module(%rip), %r10                /* begin */
    cmpq cuslice_nvml_module+8(%rip), %r10              /* size */
    jb 2f
    movq cuslice_inside_nvml@gottpoff(%rip), %r10
    cmpq %fs:(%r10), %rsp                               /* further down the stack than the call of ours */
    jb 2f
    cmpl $0, cuslice_nvml_starts(%rip)
    je cuslice_resolve_unstarted_nvml_stub              /* the program hasn't initialised it */
    leaq cuslice_nvml_hooks(%rip), %r10
    movq (%r10, %r11, 8), %r10
    testq %r10, %r10
    jne 1f
    leaq cuslice_nvml_slots(%rip), %r10
    movq (%r10, %r11, 8), %r10
    testq %r10, %r10
    je cuslice_resolve_nvml_stub                        /* not looked up yet, or not in this library */
1:  jmp *%r10
2:  leaq cuslice_physical_nvml_slots(%rip), %r10
    movq (%r10, %r11, 8), %r10
    testq %r10, %r10
    je cuslice_resolve_physical_nvml_stub               /* not looked up yet, or not in this library */
    jmp *%r10
    .size nvml_entrance, . - nvml_entrance

    .set slot, 0
.macro nvml name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    endbr64
    movl $slot, %r11d
    jmp nvml_entrance
    .size \name, . - \name
    .set slot, slot + 1
.endm
#define CUSLICE_NVML_FUNCTION(name, split) nvml name
#include "virtual_gpu/driver/nvml_functions.def"

/* The hooks of this folder (load.h), in the order of the table; 0 where there is none. */
    .section .data.rel.ro, "aw"
    .p2align 3
    .globl cuslice_nvml_hooks
    .hidden cuslice_nvml_hooks
cuslice_nvml_hooks:
.macro hook_of name
    .weak cuslice_nvml_hook_\name
    .hidden cuslice_nvml_hook_\name
    .quad cuslice_nvml_hook_\name
.endm
#define CUSLICE_NVML_FUNCTION(name, split) hook_of name
#include "virtual_gpu/driver/nvml_functions.def"

    object_notes
