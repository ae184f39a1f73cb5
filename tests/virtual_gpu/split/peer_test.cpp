// SPDX-License-Identifier: Apache-2.0
// Virtual GPUs and each other: parts of one GPU reach each other's memory, others as their GPUs do.
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

std::vector<CUdevice> asked;  // the GPUs of the last question
unsigned calls = 0;
std::vector<CUcontext> enabled, disabled;
CUresult answer = CUDA_SUCCESS;
unsigned within = 0;

struct Scene : SplitScene {
    Scene() : first(create(0)), second(create(1)), beside(create(2)) {
        calls = within = 0;
        answer = CUDA_SUCCESS;
        enabled.clear(), disabled.clear(), asked.clear();
        driver.put(
            Function::cuDeviceCanAccessPeer, +[](int* can, CUdevice from, CUdevice to) -> CUresult {
                calls++;
                asked = {from, to};
                if (!can)
                    return CUDA_ERROR_INVALID_VALUE;
                *can = 0;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuDeviceGetP2PAttribute,
            +[](int* value, CUdevice_P2PAttribute, CUdevice from, CUdevice to) -> CUresult {
                calls++;
                asked = {from, to};
                if (!value)
                    return CUDA_ERROR_INVALID_VALUE;
                *value = 7;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuDeviceGetP2PAtomicCapabilities,
            +[](unsigned*, const CUatomicOperation*, unsigned, CUdevice from, CUdevice to) -> CUresult {
                calls++;
                asked = {from, to};
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuDeviceGetHostAtomicCapabilities,
            +[](unsigned*, const CUatomicOperation*, unsigned, CUdevice gpu) -> CUresult {
                within++;
                asked = {gpu};
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuCtxEnablePeerAccess, +[](CUcontext one, unsigned flags) -> CUresult {
                if (flags || !one)
                    return CUDA_ERROR_INVALID_VALUE;
                enabled.push_back(one);
                return answer;
            });
        driver.put(
            Function::cuCtxDisablePeerAccess, +[](CUcontext one) -> CUresult {
                if (!one)
                    return CUDA_ERROR_INVALID_CONTEXT;
                disabled.push_back(one);
                return answer;
            });
    }
    static CUresult enable(CUcontext from, CUcontext to, unsigned flags = 0) {
        REQUIRE(split_driver::cuCtxSetCurrent(from) == CUDA_SUCCESS);
        return split_driver::cuCtxEnablePeerAccess(to, flags);
    }
    static CUresult disable(CUcontext from, CUcontext to) {
        REQUIRE(split_driver::cuCtxSetCurrent(from) == CUDA_SUCCESS);
        return split_driver::cuCtxDisablePeerAccess(to);
    }
    CUcontext first, second, beside;
};

using Told = std::vector<CUcontext>;

}  // namespace

TEST_CASE("parts of one GPU can reach each other, and the driver is asked of all others and of a part itself") {
    Scene scene;
    int can = -1;
    CHECK(split_driver::cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS);
    CHECK(can == 1);
    CHECK(calls == 0);
    CHECK(split_driver::cuDeviceCanAccessPeer(&can, 1, 2) == CUDA_SUCCESS);
    CHECK(can == 0);
    CHECK(asked == std::vector<CUdevice>{0, 1});
    CHECK(split_driver::cuDeviceCanAccessPeer(&can, 1, 1) == CUDA_SUCCESS);
    CHECK(asked == std::vector<CUdevice>{0, 0});
    CHECK(split_driver::cuDeviceCanAccessPeer(&can, 1, 5) == CUDA_SUCCESS);
    CHECK(asked == std::vector<CUdevice>{0, CU_DEVICE_INVALID});
    CHECK(split_driver::cuDeviceCanAccessPeer(nullptr, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the link between parts of one GPU is as of the fastest") {
    Scene scene;
    const auto of = [](CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
        int value = -1;
        const CUresult result = split_driver::cuDeviceGetP2PAttribute(&value, which, from, to);
        return result == CUDA_SUCCESS ? value : -static_cast<int>(result);
    };
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0) == 1);
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 1, 0) == 1);
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, 1, 0) == 1);
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0) == 0);
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, 1, 0) == 0);
    CHECK(of(static_cast<CUdevice_P2PAttribute>(99), 1, 0) == -CUDA_ERROR_INVALID_VALUE);
    CHECK(calls == 0);
    CHECK(of(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 2, 1) == 7);
    CHECK(asked == std::vector<CUdevice>{1, 0});
    CHECK(split_driver::cuDeviceGetP2PAttribute(nullptr, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuDeviceGetP2PAtomicCapabilities(nullptr, nullptr, 0, 0, 1) == CUDA_SUCCESS);
    CHECK(within == 1);
    CHECK(asked == std::vector<CUdevice>{0});
    CHECK(split_driver::cuDeviceGetP2PAtomicCapabilities(nullptr, nullptr, 0, 1, 2) == CUDA_SUCCESS);
    CHECK(within == 1);
    CHECK(asked == std::vector<CUdevice>{0, 1});
}

TEST_CASE("access between parts of one GPU is the program's to allow once, and the driver isn't told") {
    Scene scene;
    CHECK(scene.enable(scene.first, scene.second) == CUDA_SUCCESS);
    CHECK(scene.enable(scene.first, scene.second) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK(scene.enable(scene.first, scene.first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(scene.enable(scene.second, scene.first, 1) == CUDA_ERROR_INVALID_VALUE);
    const CUcontext third = scene.create(0);
    CHECK(scene.enable(scene.first, third) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    CHECK(scene.disable(scene.second, scene.first) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(scene.disable(scene.first, scene.second) == CUDA_SUCCESS);
    CHECK(scene.disable(scene.first, scene.second) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(enabled.empty());
    CHECK(disabled.empty());
}

TEST_CASE("access to another GPU is allowed for the first of a GPU's contexts, and forbidden for the last") {
    Scene scene;
    CHECK(scene.enable(scene.first, scene.beside) == CUDA_SUCCESS);
    CHECK(enabled == Told{real_of(1)});
    CHECK(scene.enable(scene.second, scene.beside) == CUDA_SUCCESS);
    CHECK(enabled.size() == 1);
    CHECK(scene.disable(scene.first, scene.beside) == CUDA_SUCCESS);
    CHECK(disabled.empty());
    answer = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;  // it went with a context that has ended
    CHECK(scene.disable(scene.second, scene.beside) == CUDA_SUCCESS);
    CHECK(disabled == Told{real_of(1)});
    answer = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    CHECK(scene.enable(scene.first, scene.beside) == CUDA_SUCCESS);
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(scene.disable(scene.first, scene.beside) == CUDA_ERROR_UNKNOWN);
}

TEST_CASE("access that the driver refuses isn't allowed, and can be asked for again") {
    Scene scene;
    answer = CUDA_ERROR_TOO_MANY_PEERS;
    CHECK(scene.enable(scene.first, scene.beside) == CUDA_ERROR_TOO_MANY_PEERS);
    CHECK(scene.disable(scene.first, scene.beside) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    answer = CUDA_SUCCESS;
    CHECK(scene.enable(scene.first, scene.beside) == CUDA_SUCCESS);
    CHECK(enabled.size() == 2);
}

TEST_CASE("access to or from a context that has ended, or that is none of ours") {
    Scene scene;
    CHECK(scene.enable(scene.first, context(77)) == CUDA_SUCCESS);
    CHECK(enabled == Told{context(77)});
    CHECK(scene.disable(scene.first, context(77)) == CUDA_SUCCESS);
    CHECK(disabled == Told{context(77)});
    CHECK(scene.enable(scene.first, scene.beside) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxDestroy_v2(scene.second) == CUDA_SUCCESS);
    CHECK(scene.enable(scene.first, scene.second) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(scene.disable(scene.first, scene.second) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(scene.enable(context(77), scene.first) == CUDA_SUCCESS);
    CHECK(enabled.back() == real_of(0));
    CHECK(scene.disable(context(77), scene.first) == CUDA_SUCCESS);
    CHECK(disabled.back() == real_of(0));
    MadeUpDriver::stack().clear();
    CHECK(split_driver::cuCtxEnablePeerAccess(scene.first, 0) == CUDA_SUCCESS);
    CHECK(split_driver::cuCtxDisablePeerAccess(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}
