#pragma once
#include "policy/budget.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/virtual_gpu.h"

namespace cuslice {

// What an allocation was made by, for people. Kept in Allocation::kind.
enum class Kind : std::uint8_t { memory, pitch, managed, exported };

inline bool is_managed(const Allocation& allocation) {
    return allocation.kind == static_cast<std::uint8_t>(Kind::managed);
}

// Other processes may hold it, too, and keep it when it is freed here.
inline bool is_exported(const Allocation& allocation) {
    return allocation.kind == static_cast<std::uint8_t>(Kind::exported);
}

// An allocation, context or module that does not fit: says so once for each GPU (what was asked, the limit, what holds
// most, what to change) and returns CUDA_ERROR_OUT_OF_MEMORY. `asked`: what the program asked for, where more than that
// would have been taken.
CUresult refuse(Function function, const VirtualGpu& gpu, const OverLimit& why, std::uint64_t asked = 0);

// A place among those who share the GPU could not be had. Where the slice is taken by others: says by whom, and returns
// CUDA_ERROR_OUT_OF_MEMORY. Where there is no ledger: says so once, and returns CUDA_SUCCESS, for the process goes on
// with its limit to itself.
CUresult refuse_place(const VirtualGpu& gpu, const Refusal& refusal);

// Says once for each GPU, for those who asked for it (log = info), which it is and what is allowed.
void introduce(VirtualGpu& gpu, CUcontext context);

}  // namespace cuslice
