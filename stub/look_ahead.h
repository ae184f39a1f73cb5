// What a library would bring into the process that is opened while a program runs.
#pragma once

#include "stub/names.h"
#include "stub/objects.h"

/// Whether the library that the loader would open for this name, or what that needs and is not loaded yet, comes to a
/// GPU by the names that they need. Reads files, takes memory from the kernel for as long as it takes, and asks
/// `dlopen` for what is loaded. `caller`: an address in the code that opens it. Where something can't be read, is not
/// there or is too much (256 files), it is left to the loader. Safe from any thread; errno is kept.
enum leads look_ahead(const char* name, const void* caller, dlopen_function dlopen);
