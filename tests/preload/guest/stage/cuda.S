// SPDX-License-Identifier: Apache-2.0
/* The driver's functions, each a jump through its slot. */
#include "shim/stub.inc"

    .text
    resolver stage_resolve_stub, stage_resolve

    .set slot, 0
.macro stage name
    .globl \name
    passed_through \name, stage_slots, slot, stage_resolve_stub
    .set slot, slot + 1
.endm
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) stage symbol
#include "virtual_gpu/driver/functions.def"

    object_notes
