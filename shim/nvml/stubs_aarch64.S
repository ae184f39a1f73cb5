// SPDX-License-Identifier: Apache-2.0
/* Every NVML function, exported. All come through one entrance, which tells a program's call from one of NVML's own: NVIDIA's
   library is not linked -Bsymbolic and calls itself through its exported names, of which ours are the first in the loader's
   scope. Such a call goes straight to the real function, whatever we make of a program's:

     - the return address lies in NVML; or
     - this thread is inside a call of ours into NVML (virtual_gpu/driver/inside_nvml.h), for NVML also jumps to its functions
       at the end of others, and leaves the return address of whoever called those.

   A program's call goes to the hook in this folder, if there is one, or through NVML's table. As long as the program has not
   initialised NVML, though cuslice may have for itself, it is answered as a library is that nobody has initialised. x9 to x17 belong to nobody at a
   call. */
#include "shim/stub_aarch64.inc"

    .text
    resolver cuslice_resolve_nvml_stub, cuslice_resolve_nvml
    resolver cuslice_resolve_physical_nvml_stub, cuslice_resolve_physical_nvml
    resolver cuslice_resolve_unstarted_nvml_stub, cuslice_resolve_unstarted_nvml

    .type nvml_entrance, %function
    .p2align 4
nvml_entrance:                                          /* w9: the function's place in the table */
    adrp x16, cuslice_nvml_module
    add x16, x16, :lo12:cuslice_nvml_module
    ldp x10, x11, [x16]                                 /* begin, size */
    sub x10, x30, x10
    cmp x10, x11
    b.lo 2f
    mrs x10, tpidr_el0
    adrp x11, :gottprel:cuslice_inside_nvml
    ldr x11, [x11, :gottprel_lo12:cuslice_inside_nvml]
    ldr x10, [x10, x11]
    mov x11, sp
    cmp x11, x10                                        /* further down the stack than the call of ours */
    b.lo 2f
    adrp x16, cuslice_nvml_starts
    ldr w16, [x16, :lo12:cuslice_nvml_starts]
    cbz w16, cuslice_resolve_unstarted_nvml_stub        /* the program hasn't initialised it */
    adrp x16, cuslice_nvml_hooks
    add x16, x16, :lo12:cuslice_nvml_hooks
    ldr x16, [x16, w9, uxtw #3]
    cbnz x16, 1f
    adrp x16, cuslice_nvml_slots
    add x16, x16, :lo12:cuslice_nvml_slots
    add x16, x16, w9, uxtw #3
    ldar x16, [x16]                                     /* as in passed_through */
    cbz x16, cuslice_resolve_nvml_stub                  /* not looked up yet, or not in this library */
1:  br x16
2:  adrp x16, cuslice_physical_nvml_slots
    add x16, x16, :lo12:cuslice_physical_nvml_slots
    add x16, x16, w9, uxtw #3
    ldar x16, [x16]
    cbz x16, cuslice_resolve_physical_nvml_stub         /* not looked up yet, or not in this library */
    br x16
    .size nvml_entrance, . - nvml_entrance

    .set slot, 0
.macro nvml name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    hint #34
    mov w9, #slot
    b nvml_entrance
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
