// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_work.h"

#include <utility>

#include "fake/driver/image.h"
#include "fake/driver/skipped_kernels.h"

namespace cuslice::fake {

std::vector<unsigned char> buffer_in(void** extra) {
    const unsigned char* buffer = nullptr;
    size_t size = 0;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = static_cast<const unsigned char*>(at[1]);
        else
            std::memcpy(&size, at[1], sizeof size);
    }
    return {buffer, buffer + size};
}

void NodeParameters::own_arguments(const KernelInfo& info) {
    void** const parameters = std::exchange(all.kernel.kernelParams, nullptr);
    void** const extra = std::exchange(all.kernel.extra, nullptr);
    has_arguments = info.parameters_known && (info.parameters.empty() || parameters != nullptr || extra != nullptr);
    if (!has_arguments || info.parameters.empty())
        return;
    if (parameters != nullptr) {
        for (size_t i = 0; i < info.parameters.size(); i++) {
            const auto* const value = static_cast<const unsigned char*>(parameters[i]);
            values_.emplace_back(value, value + info.parameters[i].size);
            pointers_.push_back(values_.back().data());
        }
        all.kernel.kernelParams = pointers_.data();
        return;
    }
    values_.push_back(buffer_in(extra));
    buffer_size_ = values_.back().size();
    pointers_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, values_.back().data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &buffer_size_,
                 CU_LAUNCH_PARAM_END};
    all.kernel.extra = pointers_.data();
}

NodeWork captured_kernel(const CUDA_KERNEL_NODE_PARAMS_v3& params, const KernelInfo& info) {
    const auto kept = std::make_shared<NodeParameters>();
    kept->all = kernel_params(params);
    kept->own_arguments(info);
    return {CU_GRAPH_NODE_TYPE_KERNEL, skip_kernel(), kept};
}

NodeWork captured_work(const CUgraphNodeParams& params, Task task) {
    const auto kept = std::make_shared<NodeParameters>();
    kept->all = params;
    return {params.type, std::move(task), kept};
}

CUevent event_of(const NodeWork& work) {
    const CUgraphNodeParams& all = work.parameters->all;
    return work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? all.eventWait.event : all.eventRecord.event;
}

bool same_owner(const NodeWork& one, const NodeWork& other) {
    const bool both = one.type == CU_GRAPH_NODE_TYPE_KERNEL && other.type == CU_GRAPH_NODE_TYPE_KERNEL;
    return !both || one.parameters->all.kernel.ctx == other.parameters->all.kernel.ctx;
}

CUgraphNodeParams node_params(const CUDA_MEMCPY3D& copy, CUcontext context) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params.memcpy.copyCtx = context;
    params.memcpy.copyParams = copy;
    return params;
}

CUgraphNodeParams node_params(const CUDA_MEMSET_NODE_PARAMS_v2& fill) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset = fill;
    return params;
}

CUgraphNodeParams node_params(const CUDA_HOST_NODE_PARAMS& host) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_HOST;
    params.host = {host.fn, host.userData};
    return params;
}

CUgraphNodeParams node_params(NodeType record_or_wait, CUevent event) {
    CUgraphNodeParams params{};
    params.type = record_or_wait;
    if (record_or_wait == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        params.eventWait.event = event;
    else
        params.eventRecord.event = event;
    return params;
}

}  // namespace cuslice::fake
