// SPDX-License-Identifier: Apache-2.0
// Attributes of streams.

#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

/// A number of the device that the stream is on.
int device_number(const Stream& stream, CUdevice_attribute attribute) {
    int value = 0;
    const Context* context = live_context(stream.context);
    if (context != nullptr)
        cuDeviceGetAttribute(&value, attribute, context->gpu->ordinal);
    return value;
}

bool good_window(const Stream& stream, const CUaccessPolicyWindow& window) {
    const auto most = static_cast<size_t>(device_number(stream, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE));
    return window.num_bytes <= most && window.hitRatio >= 0 && window.hitRatio <= 1 &&
           static_cast<unsigned>(window.hitProp) <= CU_ACCESS_PROPERTY_PERSISTING &&
           static_cast<unsigned>(window.missProp) <= CU_ACCESS_PROPERTY_STREAMING;  // documented: never persisting
}

CUresult set(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value, DefaultStream form) {
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    StreamSettings& settings = stream->settings;
    switch (static_cast<int>(attribute)) {
        case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            if (!good_window(*stream, value->accessPolicyWindow))
                return CUDA_ERROR_INVALID_VALUE;
            settings.window = value->accessPolicyWindow;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
                return CUDA_ERROR_INVALID_VALUE;
            settings.synchronization = value->syncPolicy;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_PRIORITY:
            stream->priority = clamped_priority(value->priority);
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: {
            const int count = device_number(*stream, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
            if (value->memSyncDomainMap.default_ >= count || value->memSyncDomainMap.remote >= count)
                return CUDA_ERROR_INVALID_VALUE;
            settings.domains = value->memSyncDomainMap;
            return CUDA_SUCCESS;
        }
        case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
            if (static_cast<unsigned>(value->memSyncDomain) > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
                return CUDA_ERROR_INVALID_VALUE;
            settings.domain = value->memSyncDomain;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult get(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value, DefaultStream form) {
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    const StreamSettings& settings = stream->settings;
    switch (static_cast<int>(attribute)) {
        case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            value->accessPolicyWindow = settings.window;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            value->syncPolicy = settings.synchronization;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_PRIORITY:
            value->priority = stream->priority;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            value->memSyncDomainMap = settings.domains;
            return CUDA_SUCCESS;
        case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
            value->memSyncDomain = settings.domain;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult copy(CUstream to_handle, CUstream from_handle, DefaultStream form) {
    Stream *to = nullptr, *from = nullptr;
    CUSLICE_TRY(find_stream(to_handle, form, to));
    CUSLICE_TRY(find_stream(from_handle, form, from));
    if (to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;  // documented: both are of one context
    to->settings = from->settings;
    to->priority = from->priority;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuStreamSetAttribute, set, stream, attribute, value)
CUSLICE_STREAM_PAIR(cuStreamGetAttribute, get, stream, attribute, value)
CUSLICE_STREAM_PAIR(cuStreamCopyAttributes, copy, to, from)
