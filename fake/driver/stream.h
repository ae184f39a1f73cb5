// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams: explicit ones, and the default ones of every context.

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake/driver/capture.h"
#include "fake/driver/context.h"
#include "fake/driver/find.h"
#include "fake/driver/work_queue.h"

namespace cuslice::fake {

/// Attributes that cuStreamSetAttribute keeps: they tune kernels, which aren't run.
struct StreamSettings {
    CUaccessPolicyWindow window{};
    CUsynchronizationPolicy synchronization = CU_SYNC_POLICY_AUTO;
    CUlaunchMemSyncDomainMap domains{};
    CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

struct Stream {
    CUstream handle = nullptr;
    CUcontext context = nullptr;
    CUgreenCtx green = nullptr;  // the green context that it was made in
    unsigned flags = CU_STREAM_DEFAULT;
    int priority = 0;
    uint64_t id = 0;
    bool legacy = false;
    std::shared_ptr<WorkQueue> queue = std::make_shared<WorkQueue>();
    CaptureOfStream capture;
    StreamSettings settings;

    /// True if work here and work in the legacy default stream wait for each other.
    bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

inline constinit HandleTable<Stream, CUstream, HandleKind::Stream> streams;

/// A priority as streams have it: documented to be clamped.
int clamped_priority(int priority);

/// Default stream that a null handle means: the form of the function decides.
enum class DefaultStream { Legacy, PerThread };

/// The stream behind a handle from the program: CUDA_ERROR_INVALID_HANDLE if there is none, else the error of the
/// current context, which default streams belong to.
CUresult find_stream(CUstream handle, DefaultStream form, Stream*& stream);

/// Makes a stream in what a handle names: a context, or a green one.
CUstream create_stream(const Context& name, unsigned flags, int priority);

/// The legacy default stream of what a handle names.
Stream& legacy_stream(const Context& name);

/// Ends the default streams of a context that ends, its green ones' too; nothing may be running in them.
void forget_default_streams(const Context& context);

/// Marks that work submitted now has to wait for: the implicit order with the legacy default stream.
std::vector<WorkQueue::Mark> implicit_order(Stream& stream);

/// The stream ends before its work does: who waits for the context waits for that work too.
void leave_work(const Stream& stream);

/// All that has been given to the context up to now, or to its green context alone if there is one: in its streams and
/// in those that have ended.
std::vector<WorkQueue::Mark> work_of(Context& context, CUgreenCtx green = nullptr);

/// Calls f(stream) for every stream of the context, default ones and those of its green contexts included.
/// f neither makes nor ends a stream.
void each_stream(Context& context, const std::function<void(Stream&)>& f);
/// The same for those of all contexts.
void each_stream(const std::function<void(Stream&)>& f);

}  // namespace cuslice::fake

/// Declares a pointer to the stream behind a handle, or returns the look-up's error:
/// CUSLICE_FIND_STREAM(stream, handle, form);
#define CUSLICE_FIND_STREAM(name, handle, form) \
    CUSLICE_FIND(::cuslice::fake::Stream, name, ::cuslice::fake::find_stream(handle, form, name))
