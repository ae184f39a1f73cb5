// SPDX-License-Identifier: Apache-2.0
/* What programs get in place of functions that begin a capture and that this version does not know: see newer_captures.h. */
#include "shim/stub.inc"

    .text
    resolver cuslice_newer_capture_stub, cuslice_newer_capture

    .globl cuslice_newer_capture_stubs
    .hidden cuslice_newer_capture_stubs
    .p2align 4
cuslice_newer_capture_stubs:
    .set index, 0
    .rept 16
    numbered index, cuslice_newer_capture_stub
    .set index, index + 1
    .endr

    object_notes
