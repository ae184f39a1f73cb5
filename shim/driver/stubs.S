// SPDX-License-Identifier: Apache-2.0
/* Every driver function whose route isn't `hook`, exported. Those that may be looked at jump through slots of their own, which
   lead to C++ in this folder, to a gate (gates.S) or to the driver; the others through the driver's. Those whose route is `hook`
   are C++ in this folder. */
#include "shim/stub.inc"

    .text
    resolver cuslice_resolve_driver_stub, cuslice_resolve_driver
    resolver cuslice_resolve_chosen_stub, cuslice_resolve_chosen

.macro exported symbol
    .globl \symbol
    passed_through \symbol, cuslice_driver_slots, slot, cuslice_resolve_driver_stub
.endm
.macro chosen symbol
    .globl \symbol
    passed_through \symbol, cuslice_chosen_slots, slot, cuslice_resolve_chosen_stub
.endm

#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) route##_##turn symbol
.macro pass_free symbol
    exported \symbol
    .set slot, slot + 1
.endm
.macro pass_gated symbol
    chosen \symbol
    .set slot, slot + 1
.endm
.macro checked_free symbol
    chosen \symbol
    .set slot, slot + 1
.endm
.macro checked_gated symbol
    chosen \symbol
    .set slot, slot + 1
.endm
.macro hook_free symbol
    .set slot, slot + 1
.endm
.macro hook_gated symbol
    .set slot, slot + 1
.endm
    .set slot, 0
#include "virtual_gpu/driver/functions.def"

    object_notes
