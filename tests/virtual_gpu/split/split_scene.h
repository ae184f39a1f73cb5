// SPDX-License-Identifier: Apache-2.0
// The functions of virtual_gpu/split/ over a made-up driver of two GPUs, the first of which is in two parts.
#pragma once

#include <array>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "tests/virtual_gpu/split/made_up_split.h"
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"

namespace cuslice::tests {

/// The primary context of a physical GPU.
inline CUcontext real_of(CUdevice physical) { return context(900 + static_cast<uintptr_t>(physical)); }

/// With nothing current in this thread and no context alive at its end, whatever a test leaves.
struct SplitScene {
    SplitScene() {
        split_gpus();
        uses = {}, resets = {}, preset = {};
        refusal = CUDA_SUCCESS;
        for (int device = 0; device < split().count(); device++)
            virtual_contexts().primary(device).ended = VirtualContext::Ended::never;
        driver.put(
            Function::cuDevicePrimaryCtxRetain, +[](CUcontext* into, CUdevice gpu) -> CUresult {
                if (gpu < 0 || gpu > 1)
                    return CUDA_ERROR_INVALID_DEVICE;
                if (refusal != CUDA_SUCCESS)
                    return refusal;
                uses[gpu]++;
                *into = real_of(gpu);
                return CUDA_SUCCESS;
            });
        driver.put(Function::cuDevicePrimaryCtxRelease, release);
        driver.put(Function::cuDevicePrimaryCtxRelease_v2, release);
        driver.put(Function::cuDevicePrimaryCtxReset, reset);
        driver.put(Function::cuDevicePrimaryCtxReset_v2, reset);
        driver.put(Function::cuDevicePrimaryCtxSetFlags, set_flags);
        driver.put(Function::cuDevicePrimaryCtxSetFlags_v2, set_flags);
        driver.put(
            Function::cuDevicePrimaryCtxGetState, +[](CUdevice gpu, unsigned* flags, int* active) -> CUresult {
                if (gpu < 0 || gpu > 1)
                    return CUDA_ERROR_INVALID_DEVICE;
                *flags = preset[gpu];
                *active = uses[gpu] > 0;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuCtxGetDevice, +[](CUdevice* gpu) -> CUresult {
                if (MadeUpDriver::stack().empty())
                    return CUDA_ERROR_INVALID_CONTEXT;
                *gpu = MadeUpDriver::stack().back() == real_of(1) ? 1 : 0;
                return CUDA_SUCCESS;
            });
    }
    ~SplitScene() {
        refusal = CUDA_SUCCESS;
        driver.say.clear();
        while (CurrentVirtual::pop(nullptr) == CUDA_SUCCESS) {
        }
        { const LeftMemory left; }
        for (const CUcontext one : created) {
            VirtualContext* const context = virtual_contexts().find(one);
            if (context && context->lives)
                virtual_contexts().end(*context);
        }
        for (int device = 0; device < split().count(); device++)
            virtual_contexts().end(virtual_contexts().primary(device));
    }
    SplitScene(const SplitScene&) = delete;
    SplitScene& operator=(const SplitScene&) = delete;

    /// A context that the program makes on a virtual GPU, and which is current then.
    CUcontext create(CUdevice device, unsigned flags = 0) {
        CUcontext made = nullptr;
        REQUIRE(split_driver::cuCtxCreate_v2(&made, flags, device) == CUDA_SUCCESS);
        created.push_back(made);
        return made;
    }

    static inline std::array<int, 2> uses{}, resets{};  // of each physical GPU's primary context
    static inline std::array<unsigned, 2> preset{};     // its flags
    static inline CUresult refusal = CUDA_SUCCESS;      // of what is asked for a primary context
    MadeUpDriver driver;
    std::vector<CUcontext> created;

  private:
    static CUresult release(CUdevice gpu) {
        if (gpu < 0 || gpu > 1)
            return CUDA_ERROR_INVALID_DEVICE;
        if (refusal != CUDA_SUCCESS)
            return refusal;
        if (uses[gpu] == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
        uses[gpu]--;
        return CUDA_SUCCESS;
    }
    static CUresult reset(CUdevice gpu) {
        if (gpu < 0 || gpu > 1)
            return CUDA_ERROR_INVALID_DEVICE;
        if (refusal != CUDA_SUCCESS)
            return refusal;
        resets[gpu]++;
        return CUDA_SUCCESS;
    }
    static CUresult set_flags(CUdevice gpu, unsigned flags) {
        if (gpu < 0 || gpu > 1)
            return CUDA_ERROR_INVALID_DEVICE;
        if (flags > CU_CTX_FLAGS_MASK)
            return CUDA_ERROR_INVALID_VALUE;
        preset[gpu] = flags;
        return CUDA_SUCCESS;
    }
};

}  // namespace cuslice::tests
