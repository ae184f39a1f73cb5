// SPDX-License-Identifier: Apache-2.0
// Streams of virtual GPUs, and what is made in a context beside them: whose they are.
#include "virtual_gpu/split/stream.h"

#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

uintptr_t made = 0;
CUresult answer = CUDA_SUCCESS;
CUcontext context_said = nullptr;
CUgreenCtx green_said = nullptr;
std::vector<const void*> destroyed;
std::vector<int> priorities;  // that streams were made with
int least = 0, greatest = -5;
CUresult range_says = CUDA_SUCCESS;
std::vector<std::string> complaints;

CUresult make_urgent(CUstream* into, unsigned flags, int priority) {
    priorities.push_back(priority);
    *into = tests::stream(0x4000 + flags);
    return CUDA_SUCCESS;
}
// Range of priorities in the current context.
CUresult range(int* lowest, int* highest) {
    if (MadeUpDriver::stack().empty() || MadeUpDriver::stack().back() != real_of(0))
        return CUDA_ERROR_INVALID_CONTEXT;
    *lowest = least, *highest = greatest;
    return range_says;
}

// The second part has a priority as long as this lives; there is but one split in a process.
struct Priority {
    explicit Priority(int priority) { part().priority = priority; }
    ~Priority() {
        part().priority.reset();
        split().on_bad_priority = Split::complain_to_nobody;
        complaints.clear(), priorities.clear();
        least = 0, greatest = -5, range_says = CUDA_SUCCESS;
    }
    Priority(const Priority&) = delete;
    Priority& operator=(const Priority&) = delete;
    static VirtualPart& part() { return const_cast<Split::Device*>(split().device(1))->part; }
};

template <typename Handle, typename... How>
CUresult make(Handle* into, How...) {
    if (answer == CUDA_SUCCESS)
        *into = tests::handle<Handle>(0x3000 + ++made);
    return answer;
}
template <typename Handle>
CUresult destroy(Handle one) {
    if (answer == CUDA_SUCCESS)
        destroyed.push_back(one);
    return answer;
}
CUresult context_of(CUstream, CUcontext* into) {
    *into = context_said;
    return answer;
}
CUresult contexts_of(CUstream, CUcontext* into, CUgreenCtx* green) {
    *into = context_said;
    *green = green_said;
    return answer;
}
CUresult gpu_of(CUstream, CUdevice* into) {
    *into = 0;
    return answer;
}

struct Scene : SplitScene {
    Scene() : first(create(0)), second(create(1)) {
        answer = CUDA_SUCCESS;
        context_said = real_of(0);
        green_said = nullptr;
        destroyed.clear();
        using enum Function;
        driver.put(cuStreamCreate, make<CUstream, unsigned>);
        driver.put(cuStreamCreateWithPriority, make<CUstream, unsigned, int>);
        driver.put(cuStreamDestroy, destroy<CUstream>);
        driver.put(cuStreamDestroy_v2, destroy<CUstream>);
        driver.put(cuStreamGetCtx, context_of);
        driver.put(cuStreamGetCtx_ptsz, context_of);
        driver.put(cuStreamGetCtx_v2, contexts_of);
        driver.put(cuStreamGetCtx_v2_ptsz, contexts_of);
        driver.put(cuStreamGetDevice, gpu_of);
        driver.put(cuStreamGetDevice_ptsz, gpu_of);
        driver.put(cuModuleLoad, make<CUmodule, const char*>);
        driver.put(cuModuleLoadData, make<CUmodule, const void*>);
        driver.put(cuModuleLoadDataEx, make<CUmodule, const void*, unsigned, CUjit_option*, void**>);
        driver.put(cuModuleLoadFatBinary, make<CUmodule, const void*>);
        driver.put(cuModuleUnload, destroy<CUmodule>);
        driver.put(cuArrayCreate_v2, make<CUarray, const CUDA_ARRAY_DESCRIPTOR*>);
        driver.put(cuArray3DCreate_v2, make<CUarray, const CUDA_ARRAY3D_DESCRIPTOR*>);
        driver.put(cuArrayDestroy, destroy<CUarray>);
        driver.put(cuMipmappedArrayCreate, make<CUmipmappedArray, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned>);
        driver.put(cuMipmappedArrayDestroy, destroy<CUmipmappedArray>);
    }
    static uint64_t number_of(CUcontext handle) { return virtual_contexts().find(handle)->number; }

    /// Made in the current context, and then not: refused, destroyed, refused to be destroyed.
    template <typename Handle, typename Make, typename Destroy>
    void check(HandleKind kind, Make make_one, Destroy end) {
        Handle one = nullptr;
        answer = CUDA_ERROR_OUT_OF_MEMORY;
        CHECK(make_one(&one) == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(one == nullptr);
        answer = CUDA_SUCCESS;
        REQUIRE(make_one(&one) == CUDA_SUCCESS);
        const HandleOwner owner = handle_registry().find(one, kind);
        CHECK(owner.known);
        CHECK(owner.device == 1);
        CHECK(owner.context == number_of(second));
        answer = CUDA_ERROR_UNKNOWN;
        CHECK(end(one) == CUDA_ERROR_UNKNOWN);
        CHECK(handle_registry().find(one, kind).context == number_of(second));
        answer = CUDA_SUCCESS;
        destroyed.clear();
        CHECK(end(one) == CUDA_SUCCESS);
        CHECK(destroyed == std::vector<const void*>{one});
        CHECK_FALSE(handle_registry().find(one, kind).known);
    }
    CUcontext first, second;
};

}  // namespace

TEST_CASE("streams, modules and arrays are noted as the current context's, until the driver has them back") {
    Scene scene;
    namespace split = split_driver;
    const auto stream_ends = split::cuStreamDestroy_v2;
    scene.check<CUstream>(
        HandleKind::stream, [](CUstream* one) { return split::cuStreamCreate(one, 0); }, stream_ends);
    scene.check<CUstream>(
        HandleKind::stream, [](CUstream* one) { return split::cuStreamCreateWithPriority(one, 0, 1); },
        split::cuStreamDestroy);
    const auto unload = split::cuModuleUnload;
    scene.check<CUmodule>(
        HandleKind::module, [](CUmodule* one) { return split::cuModuleLoad(one, "f"); }, unload);
    scene.check<CUmodule>(
        HandleKind::module, [](CUmodule* one) { return split::cuModuleLoadData(one, "i"); }, unload);
    scene.check<CUmodule>(
        HandleKind::module, [](CUmodule* one) { return split::cuModuleLoadDataEx(one, "i", 0, nullptr, nullptr); },
        unload);
    scene.check<CUmodule>(
        HandleKind::module, [](CUmodule* one) { return split::cuModuleLoadFatBinary(one, "b"); }, unload);
    const CUDA_ARRAY_DESCRIPTOR flat{};
    const CUDA_ARRAY3D_DESCRIPTOR deep{};
    scene.check<CUarray>(
        HandleKind::array, [&](CUarray* one) { return split::cuArrayCreate_v2(one, &flat); }, split::cuArrayDestroy);
    scene.check<CUarray>(
        HandleKind::array, [&](CUarray* one) { return split::cuArray3DCreate_v2(one, &deep); }, split::cuArrayDestroy);
    scene.check<CUmipmappedArray>(
        HandleKind::mipmap, [&](CUmipmappedArray* one) { return split::cuMipmappedArrayCreate(one, &deep, 3); },
        split::cuMipmappedArrayDestroy);
}

TEST_CASE("a stream's context and GPU are those that it was made in, whichever is current") {
    Scene scene;
    CUstream one = nullptr;
    REQUIRE(split_driver::cuStreamCreate(&one, 0) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxSetCurrent(scene.first) == CUDA_SUCCESS);
    CHECK(device_of(one) == 1);
    CHECK(device_of(stream(99)) == 0);  // another's, or a default one
    for (const auto ask : {split_driver::cuStreamGetCtx, split_driver::cuStreamGetCtx_ptsz}) {
        CUcontext context = nullptr;
        CHECK(ask(one, &context) == CUDA_SUCCESS);
        CHECK(context == scene.second);
        CHECK(ask(stream(99), &context) == CUDA_SUCCESS);
        CHECK(context == scene.first);
        answer = CUDA_ERROR_INVALID_HANDLE;
        CHECK(ask(one, &context) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(context == real_of(0));
        answer = CUDA_SUCCESS;
    }
    for (const auto ask : {split_driver::cuStreamGetDevice, split_driver::cuStreamGetDevice_ptsz}) {
        CUdevice device = -1;
        CHECK(ask(one, &device) == CUDA_SUCCESS);
        CHECK(device == 1);
        CHECK(ask(stream(99), &device) == CUDA_SUCCESS);
        CHECK(device == 0);
        answer = CUDA_ERROR_INVALID_HANDLE;
        CHECK(ask(one, &device) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(device == 0);
        answer = CUDA_SUCCESS;
    }
    for (const auto ask : {split_driver::cuStreamGetCtx_v2, split_driver::cuStreamGetCtx_v2_ptsz}) {
        CUcontext context = nullptr;
        CUgreenCtx green = nullptr;
        CHECK(ask(one, &context, &green) == CUDA_SUCCESS);
        CHECK(context == scene.second);
        // A green context's stream has no other context.
        context_said = nullptr;
        green_said = tests::handle<CUgreenCtx>(5);
        CHECK(ask(one, &context, &green) == CUDA_SUCCESS);
        CHECK(context == nullptr);
        CHECK(green == green_said);
        context_said = real_of(0), green_said = nullptr;
    }
    handle_registry().remove(one, HandleKind::stream);
}

TEST_CASE("a stream of no context of ours, or whose context has ended, is shown in the current one") {
    Scene scene;
    CUstream one = nullptr, green = stream(98);
    REQUIRE(split_driver::cuStreamCreate(&one, 0) == CUDA_SUCCESS);
    REQUIRE(handle_registry().add(green, HandleKind::stream, 1, 0));
    CUcontext context = nullptr;
    REQUIRE(split_driver::cuCtxSetCurrent(scene.first) == CUDA_SUCCESS);
    CHECK(split_driver::cuStreamGetCtx(green, &context) == CUDA_SUCCESS);
    CHECK(context == scene.first);
    CHECK(device_of(green) == 1);
    handle_registry().remove(green, HandleKind::stream);
    virtual_contexts().end(*virtual_contexts().find(scene.second));
    CHECK(split_driver::cuStreamGetCtx(one, &context) == CUDA_SUCCESS);
    CHECK(context == scene.first);
    handle_registry().remove(one, HandleKind::stream);
    MadeUpDriver::stack().clear();
    CHECK(device_of(nullptr) == -1);
}

TEST_CASE("a stream without a priority has the part's that it is made on, and any other its own") {
    Scene scene;
    scene.driver.put(Function::cuStreamCreateWithPriority, make_urgent);
    scene.driver.put(Function::cuCtxGetStreamPriorityRange, range);
    const Priority priority(-2);
    CHECK(current_priority() == -2);
    CUstream one = nullptr;
    CHECK(split_driver::cuStreamCreate(&one, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(one == stream(0x4001));
    CHECK(device_of(one) == 1);
    handle_registry().remove(one, HandleKind::stream);
    CHECK(split_driver::cuStreamCreateWithPriority(&one, 0, 3) == CUDA_SUCCESS);
    handle_registry().remove(one, HandleKind::stream);
    CHECK(priorities == std::vector{-2, 3});
    REQUIRE(split_driver::cuCtxSetCurrent(scene.first) == CUDA_SUCCESS);
    CHECK_FALSE(current_priority());
    CHECK(split_driver::cuStreamCreate(&one, 0) == CUDA_SUCCESS);
    handle_registry().remove(one, HandleKind::stream);
    CHECK(priorities.size() == 2);
    MadeUpDriver::stack().clear();
    CHECK_FALSE(current_priority());
}

TEST_CASE("a context of a part is refused where the GPU lacks its priority, and nothing is left of it") {
    Scene scene;
    scene.driver.put(Function::cuCtxGetStreamPriorityRange, range);
    const Priority priority(-6);
    split().on_bad_priority = [](const Split::Device& part, int lowest, int highest) {
        complaints.push_back(std::to_string(*part.part.priority) + " in " + std::to_string(lowest) + ".." +
                             std::to_string(highest));
    };
    const int before = SplitScene::uses[0];
    const auto depth = MadeUpDriver::stack().size();
    CUcontext context = nullptr;
    CHECK(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuCtxCreate_v2(&context, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(complaints == std::vector<std::string>{"-6 in 0..-5", "-6 in 0..-5"});
    Priority::part().priority = 1;
    CHECK(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(complaints.back() == "1 in 0..-5");
    range_says = CUDA_ERROR_UNKNOWN;
    CHECK(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_UNKNOWN);
    CHECK(complaints.size() == 3);
    CHECK(context == nullptr);
    CHECK_FALSE(virtual_contexts().primary(1).lives);
    CHECK(SplitScene::uses[0] == before);
    CHECK(MadeUpDriver::stack().size() == depth);
    // Both ends are the GPU's.
    range_says = CUDA_SUCCESS;
    for (const int end : {0, -5}) {
        Priority::part().priority = end;
        CHECK(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
    }
    CHECK(complaints.size() == 3);
    CHECK(MadeUpDriver::stack().size() == depth);
}
