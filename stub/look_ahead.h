// SPDX-License-Identifier: Apache-2.0
// Looks ahead at the libraries that a dlopen would bring into the process.
#pragma once

#include "stub/names.h"
#include "stub/objects.h"

/// Says whether dlopen(name) would lead to a GPU, by the names of needed libraries: those that the opened library
/// needs, and in turn those that its needed libraries need, unless they are loaded already. Reads files, takes memory
/// from the kernel until it returns, and asks `dlopen` what is loaded. `caller`: an address in the code that opens the
/// library. Anything that can't be read, is missing or is too much (256 files) is left to the loader. Safe from any
/// thread; errno is kept.
enum leads look_ahead(const char* name, const void* caller, dlopen_function dlopen);
