// SPDX-License-Identifier: Apache-2.0
/* NVML's functions, each a jump through its slot. */
#include "shim/stub.inc"

    .text
    resolver stage_resolve_stub, stage_resolve

    .set slot, 0
.macro stage name
    .globl \name
    passed_through \name, stage_slots, slot, stage_resolve_stub
    .set slot, slot + 1
.endm
#define CUSLICE_NVML_FUNCTION(name, split) stage name
#include "virtual_gpu/driver/nvml_functions.def"

    object_notes
