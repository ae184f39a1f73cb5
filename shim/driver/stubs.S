// SPDX-License-Identifier: Apache-2.0
/* Every driver function whose route is `pass`, exported, and those whose route is `checked`: these jump through slots of
   their own, which lead to C++ in this folder or to the driver. Those whose route is `hook` are C++ in this folder. */
#include "shim/stub.inc"

    .text
    resolver cuslice_resolve_driver_stub, cuslice_resolve_driver
    resolver cuslice_resolve_checked_stub, cuslice_resolve_checked

    .set slot, 0
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) route symbol
.macro pass symbol
    .globl \symbol
    passed_through \symbol, cuslice_driver_slots, slot, cuslice_resolve_driver_stub
    .set slot, slot + 1
.endm
.macro checked symbol
    .globl \symbol
    passed_through \symbol, cuslice_checked_slots, slot, cuslice_resolve_checked_stub
    .set slot, slot + 1
.endm
.macro hook symbol
    .set slot, slot + 1
.endm
#include "virtual_gpu/driver/functions.def"

    object_notes
