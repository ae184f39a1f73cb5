// SPDX-License-Identifier: Apache-2.0
/* The gates at which launches stand where time is shared: cuslice_gate_of_cuLaunchKernel stands before cuLaunchKernel. Of
   functions whose route is `hook` the hook asks. */
#include "shim/stub.inc"

    .text
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) route##_##turn symbol
.macro pass_free symbol
.endm
.macro checked_free symbol
.endm
.macro hook_free symbol
.endm
.macro hook_gated symbol
.endm
.macro pass_gated symbol
    .globl cuslice_gate_of_\symbol
    .hidden cuslice_gate_of_\symbol
    gate cuslice_gate_of_\symbol, number
    .set number, number + 1
.endm
.macro checked_gated symbol
    pass_gated \symbol
.endm
    .set number, 0
#include "virtual_gpu/driver/functions.def"

    object_notes
