// SPDX-License-Identifier: Apache-2.0
/* Every function of the driver, exported: each asks check_traced where to go on, with its number. The two look-ups are
   C++ (call_trace.cpp), as what they return is exchanged. */
#include "shim/stub.inc"

    .text
    resolver check_traced_stub, check_traced

    .macro traced symbol, number
    .ifnc \symbol, cuGetProcAddress
    .ifnc \symbol, cuGetProcAddress_v2
    .globl \symbol
    .type \symbol, %function
    .p2align 4
\symbol:
    numbered \number, check_traced_stub
    .size \symbol, . - \symbol
    .endif
    .endif
    .endm

    .set number, 0
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) in_order symbol
    .macro in_order symbol
    traced \symbol, number
    .set number, number + 1
    .endm
#include "virtual_gpu/driver/functions.def"

    object_notes
