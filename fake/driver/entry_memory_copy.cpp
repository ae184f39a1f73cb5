// SPDX-License-Identifier: Apache-2.0
// Copies of one range of bytes: every direction, older and newer forms, legacy and per-thread default stream.

#include "fake/driver/stream_pair.h"
#include "fake/driver/transfer.h"

using namespace cuslice::fake;

namespace {

constexpr auto from_host = [](Address to, const void* from, size_t bytes, auto... stream) {
    return copy_linear(device_end(to), host_end(from), bytes, order_of(stream...));
};
constexpr auto to_host = [](void* to, Address from, size_t bytes, auto... stream) {
    return copy_linear(host_end(to), device_end(from), bytes, order_of(stream...));
};
constexpr auto on_device = [](Address to, Address from, size_t bytes, auto... stream) {
    return copy_linear(device_end(to), device_end(from), bytes, order_of(stream...));
};
constexpr auto anywhere = [](Address to, Address from, size_t bytes, auto... stream) {
    return copy_linear(any_end(to), any_end(from), bytes, order_of(stream...));
};
/// Between contexts: both must live, whichever is current.
constexpr auto between = [](Address to, CUcontext to_context, Address from, CUcontext from_context, size_t bytes,
                            auto... stream) {
    const Context *to_owner = live_context(to_context), *from_owner = live_context(from_context);
    if (to_owner == nullptr || from_owner == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_linear(device_end(to, to_owner->gpu->ordinal), device_end(from, from_owner->gpu->ordinal), bytes,
                       order_of(stream...));
};

}  // namespace

CUSLICE_STREAM_FORMS(cuMemcpyHtoD, _ptds, from_host, to, from, bytes)
CUSLICE_STREAM_FORMS(cuMemcpyHtoDAsync, _ptsz, from_host, to, from, bytes, stream)

CUSLICE_STREAM_FORMS(cuMemcpyDtoH, _ptds, to_host, to, from, bytes)
CUSLICE_STREAM_FORMS(cuMemcpyDtoHAsync, _ptsz, to_host, to, from, bytes, stream)

CUSLICE_STREAM_FORMS(cuMemcpyDtoD, _ptds, on_device, to, from, bytes)
CUSLICE_STREAM_FORMS(cuMemcpyDtoDAsync, _ptsz, on_device, to, from, bytes, stream)

CUSLICE_STREAM_FORM(cuMemcpy, anywhere, to, from, bytes)
CUSLICE_STREAM_FORM(cuMemcpy_ptds, anywhere, to, from, bytes)
CUSLICE_STREAM_PAIR(cuMemcpyAsync, anywhere, to, from, bytes, stream)

CUSLICE_STREAM_FORM(cuMemcpyPeer, between, to, to_context, from, from_context, bytes)
CUSLICE_STREAM_FORM(cuMemcpyPeer_ptds, between, to, to_context, from, from_context, bytes)
CUSLICE_STREAM_PAIR(cuMemcpyPeerAsync, between, to, to_context, from, from_context, bytes, stream)
