// SPDX-License-Identifier: Apache-2.0
// Objects that are loaded in this process.
#pragma once

#include <stdbool.h>
#include <stddef.h>

/// Object that wants a library: one that is loaded, or one that would be.
struct wanting {
    const char* path;  // of its file: $ORIGIN is the folder of this
    const char *rpath, *runpath;
    const struct wanting* by;  // who wants this one
};

/// The dlopen that programs would call without the stub: the next one in the loader's order after the stub, as
/// dlsym(RTLD_NEXT) has it. dlsym isn't asked: other libraries stand before it, and before glibc 2.34 it is in a
/// library that not every program has. Null if there is none.
typedef void* (*dlopen_function)(const char*, int);
dlopen_function find_next_dlopen(void);
/// The first function of this name in any object but the stub, in the loader's order, or null.
void* find_function(const char* symbol);

/// The path, as it was opened by, of the first object behind the program that exports this function, or null.
const char* first_to_export(const char* symbol);
/// The same, and null where that is a copy of libcuslice.so, and nobody needs a library whose name begins with
/// `needed`.
const char* linked_to(const char* symbol, const char* needed);

/// Paths of the C library, and of the one that had its dlopen before glibc 2.34, as far as they stand before the stub
/// and before the object of the path `library`: a program's dlopen is theirs then. At most `most`; returns how many.
size_t list_c_libraries_before_stub(const char* library, const char** paths, size_t most);

/// True if the address lies in a copy of libcuslice.so, of whichever installation.
bool lies_in_copy(const void* address);

/// The address of a function that the object of this handle itself exports, or null.
void* find_in(void* handle, const char* symbol);

/// Sets those of these names to null under which something is loaded: a SONAME, or the path that it was opened by.
/// Other names by which it was opened are not known.
void leave_out_loaded(const char** names, size_t count);

/// Describes the object in which an address lies, or the program if it lies in none. The texts stay where they are as
/// long as the object is loaded. The program's path is "", as the loader doesn't know it.
void describe_object(const void* address, struct wanting* object);

/// The path of the stub, or null.
const char* own_path(void);

/// The path of libcuslice.so: beside the stub, or else in the folder `library` there, which `cuslice install --system`
/// makes a link: then the path that it leads to. False if it doesn't fit; the file may be missing.
bool library_path(char* path, size_t size);
