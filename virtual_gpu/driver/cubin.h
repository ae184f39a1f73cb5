// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cubins: ELF files of NVIDIA's GPUs. NVIDIA documents none of it; these are the values that ptxas 9.0 to 13.0 writes.

#include <elf.h>

#include <cstdint>
#include <string_view>

#include "elf/file.h"

namespace cuslice {

constexpr uint16_t kCudaMachine = 190;               // e_machine; <elf.h> of glibc 2.17 lacks EM_CUDA
constexpr unsigned char kManagedSymbol = 0x04;       // bit of st_other: a variable in managed memory
constexpr unsigned char kKernelSymbol = 0x10;        // bit of st_other: a function that can be launched
constexpr std::string_view kGlobals = ".nv.global";  // begins the names of the sections of variables

inline bool is_cubin(const Elf64_Ehdr& header) { return elf_is_known(&header) && header.e_machine == kCudaMachine; }

}  // namespace cuslice
