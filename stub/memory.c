// SPDX-License-Identifier: Apache-2.0
// memcpy and memset for the calls that compilers insert by themselves. The C library's are out of reach: the resolver
// of linked.c may call nothing of it.
#include <stddef.h>

#define OWN __attribute__((visibility("hidden")))
// Keeps a compiler from taking the loop for what it implements.
#define A_LOOP __asm__ volatile("" ::: "memory")

OWN void* memcpy(void* to, const void* from, size_t size);
OWN void* memset(void* to, int value, size_t size);

void* memcpy(void* to, const void* from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((char*)to)[i] = ((const char*)from)[i];
        A_LOOP;
    }
    return to;
}

void* memset(void* to, int value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((char*)to)[i] = (char)value;
        A_LOOP;
    }
    return to;
}
