// SPDX-License-Identifier: Apache-2.0
// GPUs and each other: parts of one GPU are the driver shim's to connect, and all others the runtime's.
#include "shim/runtime/peers.h"

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// A context of the runtime's: what makes one is part of the test.
cudaError_t get_device(int* device) {
    *device = 1;
    return cudaSuccess;
}
cudaError_t fail_to_get_device(int*) { return cudaErrorNoDevice; }

cudaMemcpy3DPeerParms box_between(int from, int to) {
    cudaMemcpy3DPeerParms box{};
    box.srcDevice = from;
    box.dstDevice = to;
    box.extent = {77, 1, 1};
    return box;
}

}  // namespace

TEST_CASE("whether parts of one GPU reach each other is the driver shim's to say") {
    MadeUpRuntime runtime;
    int can = -1;
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 0, 1) == "cuDeviceCanAccessPeer 0 1");
    CHECK(can == 1);
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 3, 0) == "cudaDeviceCanAccessPeer * 1 0");
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 3, 3) == "cudaDeviceCanAccessPeer * 1 1");
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 3, 4) == "cudaDeviceCanAccessPeer * 1 -2");
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 9, 4) == "cudaDeviceCanAccessPeer * -2 -2");
    const auto attribute = cudaDevP2PAttrAccessSupported;
    CHECK(ASK(cudaDeviceGetP2PAttribute, &can, attribute, 2, 3) ==
          in_words("cuDeviceGetP2PAttribute", CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2, 3));
    CHECK(ASK(cudaDeviceGetP2PAttribute, &can, attribute, 0, 2) ==
          in_words("cudaDeviceGetP2PAttribute", &can, attribute, 0, 1));
    runtime.driver_says = CUDA_ERROR_INVALID_DEVICE;
    ASK(cudaDeviceCanAccessPeer, &can, 0, 1);
    CHECK(runtime.result == cudaErrorInvalidDevice);
    ASK(cudaDeviceGetP2PAttribute, &can, attribute, 2, 3);
    CHECK(runtime.result == cudaErrorInvalidDevice);
    runtime.split = false;
    CHECK(ASK(cudaDeviceCanAccessPeer, &can, 0, 1) == "cudaDeviceCanAccessPeer * 0 1");
}

TEST_CASE("what atomic operations parts of one GPU have between them the runtime is not asked") {
    MadeUpRuntime runtime;
    unsigned can = 0;
    const cudaAtomicOperation operation = cudaAtomicOperationIntegerAdd;
    // A pair of GPUs that aren't there: the runtime refuses in its own words.
    CHECK(ASK(cudaDeviceGetP2PAtomicCapabilities, &can, &operation, 1u, 0, 1) ==
          "cudaDeviceGetP2PAtomicCapabilities * * 1 -1 -1");
    CHECK(ASK(cudaDeviceGetP2PAtomicCapabilities, &can, &operation, 1u, 3, 0) ==
          "cudaDeviceGetP2PAtomicCapabilities * * 1 1 0");
}

TEST_CASE("access to a peer is given to its primary context while the thread's stays current") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDevice, &get_device);
    record<runtime::Id::cudaSetDevice>(&runtime::cudaSetDevice<13>);
    runtime.current = 3;
    CHECK(ASK(cudaDeviceEnablePeerAccess, 1, 7u) == "current 1; current 3; cuCtxEnablePeerAccess 1 7");
    CHECK(runtime.current == 3);
    CHECK(ASK(cudaDeviceDisablePeerAccess, 1) == "current 1; current 3; cuCtxDisablePeerAccess 1");
    CHECK(runtime.current == 3);
    // Itself, too: the driver refuses that.
    CHECK(ASK(cudaDeviceEnablePeerAccess, 3, 0u) == "current 3; current 3; cuCtxEnablePeerAccess 3 0");
    runtime.driver_says = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    ASK(cudaDeviceEnablePeerAccess, 1, 0u);
    CHECK(runtime.result == cudaErrorPeerAccessAlreadyEnabled);
    runtime.driver_says = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    ASK(cudaDeviceDisablePeerAccess, 1);
    CHECK(runtime.result == cudaErrorPeerAccessNotEnabled);
}

TEST_CASE("a thread without a context gets one before access to a peer, which needs it") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDevice, &get_device);
    record<runtime::Id::cudaSetDevice>(&runtime::cudaSetDevice<13>);
    CHECK(ASK(cudaDeviceEnablePeerAccess, 1, 0u) ==
          "current 2; cudaSetDevice 1; current 1; current 2; cuCtxEnablePeerAccess 1 0");
    CHECK(runtime.current == 2);
    // One that has none, and part 0 is a context like any other.
    runtime.current = 0;
    CHECK(ASK(cudaDeviceEnablePeerAccess, 1, 0u) == "current 1; current 0; cuCtxEnablePeerAccess 1 0");
    CHECK(ASK(cudaDeviceDisablePeerAccess, 1) == "current 1; current 0; cuCtxDisablePeerAccess 1");
    // To give access up it needs none made: there is nothing to give up.
    runtime.current = -1;
    CHECK(ASK(cudaDeviceDisablePeerAccess, 1) == "cudaDeviceDisablePeerAccess 0");
}

TEST_CASE("access to what is no peer is the runtime's to refuse") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDevice, &get_device);
    record<runtime::Id::cudaSetDevice>(&runtime::cudaSetDevice<13>);
    runtime.current = 0;
    CHECK(ASK(cudaDeviceEnablePeerAccess, 4, 7u) == "cudaDeviceEnablePeerAccess -2 7");
    CHECK(ASK(cudaDeviceDisablePeerAccess, 4) == "cudaDeviceDisablePeerAccess -2");
    // So is one whose context can't be made.
    runtime.made_current = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(ASK(cudaDeviceEnablePeerAccess, 3, 7u) == "current 3; cudaDeviceEnablePeerAccess 1 7");
    CHECK(ASK(cudaDeviceDisablePeerAccess, 3) == "current 3; cudaDeviceDisablePeerAccess 1");
    runtime.made_current = CUDA_SUCCESS;
    runtime.put(runtime::Id::cudaGetDevice, &fail_to_get_device);
    CHECK(ASK(cudaDeviceEnablePeerAccess, 3, 7u) == "cudaDeviceEnablePeerAccess 1 7");
    runtime.split = false;
    CHECK(ASK(cudaDeviceEnablePeerAccess, 3, 7u) == "cudaDeviceEnablePeerAccess 3 7");
    CHECK(ASK(cudaDeviceDisablePeerAccess, 3) == "cudaDeviceDisablePeerAccess 3");
}

TEST_CASE("a copy between parts of one GPU is one within it") {
    MadeUpRuntime runtime;
    RECORD_NEEDED(cudaMemcpy, cudaMemcpy);
    RECORD_NEEDED(cudaMemcpyAsync, cudaMemcpyAsync);
    char to[8], from[8];
    CHECK(ASK(cudaMemcpyPeer, to, 0, from, 1, size_t{8}) ==
          in_words("cudaMemcpy", static_cast<void*>(to), static_cast<void*>(from), 8, cudaMemcpyDeviceToDevice));
    CHECK(ASK(cudaMemcpyPeerAsync, to, 3, from, 2, size_t{8}, nullptr) ==
          in_words("cudaMemcpyAsync", static_cast<void*>(to), static_cast<void*>(from), 8, cudaMemcpyDeviceToDevice,
                   static_cast<cudaStream_t>(nullptr)));
    CHECK(ASK(cudaMemcpyPeer, to, 3, from, 1, size_t{8}) == "cudaMemcpyPeer * 1 * 0 8");
    CHECK(ASK(cudaMemcpyPeer, to, 0, from, 2, size_t{8}) == "cudaMemcpyPeer * 0 * 1 8");
    CHECK(ASK(cudaMemcpyPeer, to, 1, from, 1, size_t{8}) == "cudaMemcpyPeer * 0 * 0 8");
    CHECK(ASK(cudaMemcpyPeerAsync, to, 3, from, 1, size_t{8}, nullptr) == "cudaMemcpyPeerAsync * 1 * 0 8 0");
    runtime.split = false;
    CHECK(ASK(cudaMemcpyPeer, to, 0, from, 1, size_t{8}) == "cudaMemcpyPeer * 0 * 1 8");
}

TEST_CASE("so is a copy of a box, in each of its forms") {
    MadeUpRuntime runtime;
    RECORD_NEEDED(cudaMemcpy3D, cudaMemcpy3D);
    RECORD_NEEDED(cudaMemcpy3D_ptds, cudaMemcpy3D);
    RECORD_NEEDED(cudaMemcpy3DAsync, cudaMemcpy3DAsync);
    RECORD_NEEDED(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);
    const cudaMemcpy3DPeerParms within = box_between(2, 3), between = box_between(1, 2);
    CHECK(ASK(cudaMemcpy3DPeer, &within) == "cudaMemcpy3D 77");
    CHECK(ASK(cudaMemcpy3DPeer_ptds, &within) == "cudaMemcpy3D_ptds 77");
    CHECK(ASK(cudaMemcpy3DPeerAsync, &within, nullptr) == "cudaMemcpy3DAsync 77 0");
    CHECK(ASK(cudaMemcpy3DPeerAsync_ptsz, &within, nullptr) == "cudaMemcpy3DAsync_ptsz 77 0");
    CHECK(ASK(cudaMemcpy3DPeer, &between) == "cudaMemcpy3DPeer 0>1:77");
    CHECK(ASK(cudaMemcpy3DPeer_ptds, &between) == "cudaMemcpy3DPeer_ptds 0>1:77");
    CHECK(ASK(cudaMemcpy3DPeerAsync, &between, nullptr) == "cudaMemcpy3DPeerAsync 0>1:77 0");
    CHECK(ASK(cudaMemcpy3DPeerAsync_ptsz, &between, nullptr) == "cudaMemcpy3DPeerAsync_ptsz 0>1:77 0");
    // The program's own is left as it is.
    CHECK(between.srcDevice == 1);
    CHECK(ASK(cudaMemcpy3DPeer, nullptr) == "cudaMemcpy3DPeer 0");
    CHECK(ASK(cudaMemcpy3DPeerAsync_ptsz, nullptr, nullptr) == "cudaMemcpy3DPeerAsync_ptsz 0 0");
}
