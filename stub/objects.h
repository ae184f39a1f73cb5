// What is loaded in this process.
#pragma once

#include <stdbool.h>
#include <stddef.h>

/// The dlopen that programs would call without the stub: the next one in the loader's order after the stub, as
/// dlsym(RTLD_NEXT) has it. dlsym isn't asked: other libraries stand before it, and before glibc 2.34 it is in a
/// library that not every program has. Null if there is none.
typedef void* (*dlopen_function)(const char*, int);
dlopen_function find_next_dlopen(void);

/// The address of a function that the object of this handle itself exports, or null.
void* find_in(void* handle, const char* symbol);

/// The path of libcuslice.so: beside the stub, or else in the folder `library` there, which `cuslice install --system`
/// makes a link. False if it doesn't fit; whether the file is there is another question.
bool library_path(char* path, size_t size);
