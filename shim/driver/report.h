// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/budget/budget.h"
#include "shim/log.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// An allocation, context or module that does not fit: says so (what was asked, the limit, what holds most, what to
// change), unless there were many of them on this GPU a moment ago, and returns CUDA_ERROR_OUT_OF_MEMORY. `asked`: what
// the program asked for, where more than that would have been taken.
CUresult refuse(Function function, VirtualGpu& gpu, const LimitError& why, uint64_t asked = 0);

// Requests on this GPU that were refused so far.
uint64_t refusals_of(const VirtualGpu& gpu);
// "; 3 requests were refused", of memory of the GPU; nothing if none was.
void append_refusals(LogLine& line, const VirtualGpu& gpu);

// At the program's end: says what it was refused just before, where that was not shown.
void report_last_refusals();

// At the program's end, where `log` or `summary` wants it: how much of each limit it used at most, what held it, what
// all processes of its job held at most, and how often it was refused more.
void report_use();

// Logs the outcome of joining those who share the GPU. If others have taken the slice, names them and returns
// CUDA_ERROR_OUT_OF_MEMORY; likewise if a limit is shared by a ledger that can't be had. Otherwise returns
// CUDA_SUCCESS, after a message, once for each GPU, if its ledger had to be made anew.
CUresult answer_place(const VirtualGpu& gpu, const Refusal& refusal);

// Says once for each GPU that its memory lies where the caching allocator can't find it again, so that nothing is
// cached.
void report_no_map(const VirtualGpu& gpu);

// Says once for each GPU that the driver had so much less than the slice that is to be taken at once.
void report_missing(const VirtualGpu& gpu, uint64_t bytes);

// Says once, for those who asked for it (log = debug), why cuslice stats will find nothing of this process.
void report_unpublished();

// As the program ends, where `log` or `summary` wants it: how much of the GPUs' time its job had.
void report_times();
// Says what share of a GPU's time the job has, what it had of it and how long it waited, if it has one.
void report_time(LogLevel level, const VirtualGpu& gpu);

// From now on it is said, once for each of these, which holder of the GPU's time was passed by and why, and why this
// process shares none.
void report_turns();

// Says once into which file the program is recorded, for those who asked for it (log = info), and that and why it
// ended.
void report_recording();

// Says once for each GPU, for those who asked for it (log = info), which it is and what is allowed.
void log_slice(VirtualGpu& gpu, CUcontext context);

}  // namespace cuslice
