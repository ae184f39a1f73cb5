// SPDX-License-Identifier: Apache-2.0
// The processor that this build is for, as ELF files name it and as people do.
#pragma once
#include <elf.h>

namespace cuslice {

#if defined(__x86_64__)
inline constexpr unsigned kElfMachine = EM_X86_64;
inline constexpr char kMachineName[] = "x86_64";
inline constexpr char kLoaderName[] = "ld-linux-x86-64.so.2";  // the GNU C library's
#elif defined(__aarch64__)
inline constexpr unsigned kElfMachine = EM_AARCH64;
inline constexpr char kMachineName[] = "aarch64";
inline constexpr char kLoaderName[] = "ld-linux-aarch64.so.1";
#else
#error "cuslice is written for x86_64 and aarch64"
#endif

}  // namespace cuslice
