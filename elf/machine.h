// SPDX-License-Identifier: Apache-2.0
// The processor that this build is for, as ELF files name it and as people do, and the GNU C library's loader there.
#pragma once

#include <elf.h>

#if defined(__x86_64__)
enum { elf_own_machine = EM_X86_64 };
#define ELF_MACHINE_NAME "x86_64"
#define ELF_LOADER_NAME "ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
enum { elf_own_machine = EM_AARCH64 };
#define ELF_MACHINE_NAME "aarch64"
#define ELF_LOADER_NAME "ld-linux-aarch64.so.1"
#else
#error "cuslice is written for x86_64 and aarch64"
#endif
