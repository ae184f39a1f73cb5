// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Stands before a function that every program runs when the library is loaded into it: such functions lie together,
/// as each further page of code costs the start of a program without CUDA another page fault.
#define CUSLICE_AT_LOAD [[gnu::section(".text.startup")]]
