// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/scene.h"

#include <string>
#include <utility>

#include "tests/virtual_gpu/interleave/charged_memory.h"
#include "virtual_gpu/cache/threads.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice {

// In the place of those of virtual_gpu/cache/: threads of a schedule stay, so that the end of one is a call.
namespace {

thread_local void (*last)(void*) = nullptr;
thread_local void* argument_of_last = nullptr;

void thread_ends() {
    if (const auto end = std::exchange(last, nullptr))
        end(argument_of_last);
}

}  // namespace

void at_thread_end(void (*call)(void*), void* argument) {
    last = call;
    argument_of_last = argument;
}

bool start_background_thread(void* (*)(void*), void*) { return true; }

namespace tests {

namespace {

Slice slice_of(FreeMode mode) {
    Slice made;
    made.limited = made.own_headroom = true;
    made.limit = kLimit;
    made.headroom = kHeadroom;
    made.allocator = AllocatorMode::growth;
    made.free = mode;
    return made;
}

}  // namespace

Process::Process() {
    GpuState& state = gpu_state();
    state.sharing.folder.assign("/dev/null/none");  // no file of figures
    state.reclaimer = &caches;
    state.start_nvml = [] { return true; };
    state.look_for_ended = [](VirtualGpu&) {};
    for (PhysicalGpu& one : physical)
        one.open({}, kLimit);
    strict.open(0, {}, physical[0], "strict", slice_of(FreeMode::strict));
    deferred.open(1, {}, physical[1], "deferred", slice_of(FreeMode::deferred));
    measured.open(2, {}, physical[2], "measured", slice_of(FreeMode::strict));
}

Process& Process::get() {
    static Process& process = *new Process;
    return process;
}

Scene::Scene(VirtualGpu& on, MadeUpGpu::Modes modes) : gpu(on), driver(kLimit, modes) {
    begin(one);
    MadeUpGpu::set_current(one);
}

Scene::~Scene() {
    for (const CUcontext left : {one, other})
        if (gpu_state().contexts.known_id(left))
            end(left);
    thread_ends();
    MadeUpGpu::set_current(nullptr);
}

Schedule::Body Scene::thread(CUcontext current, std::function<void()> body) {
    return [current, body = std::move(body)] {
        MadeUpGpu::set_current(current);
        body();
        thread_ends();
        MadeUpGpu::set_current(nullptr);
    };
}

Contexts::Id Scene::begin(CUcontext context) {
    driver.make_context(context);
    return gpu_state().contexts.id_of(context, gpu.device());
}

void Scene::end(CUcontext context) {
    const ContextEnd ending(context);
    uint64_t bytes = 0;
    gpu.budget().begin_release();
    gpu_state().allocations.erase_context(gpu_state().contexts.known_id(context), add_bytes, &bytes);
    driver.end_context(context);
    caches.context_ended(context);
    gpu.budget().end_release(bytes);
    gpu_state().contexts.ended(context);
    gpu.context_gone();
}

void Scene::begin_capture(CUstream stream) {
    caches.captures().may_begin(stream, CaptureTracker::By::known);
    driver.begin_capture(stream);
    caches.captures().began(stream);
}

void Scene::end_capture(CUstream stream) {
    const uint64_t moment = caches.captures().moment();
    driver.end_capture(stream);
    caches.captures().ended(stream, moment);
}

ContextAllocator& Scene::cache_of(CUcontext context) { return *caches.of(gpu, gpu_state().contexts.known_id(context)); }

uint64_t Scene::allocate(ContextAllocator& of, uint64_t bytes) {
    AllocationError denied;
    const uint64_t block = of.allocate(bytes, &denied);
    if (block)
        driver.hand_out(block, bytes);
    return block;
}

void Scene::free(uint64_t block) {
    int error = 0;
    driver.take_back(block);
    expect(ContextAllocator::free(caches.map(), block, &error) == Freed::done);
}

uint64_t Scene::allocate_directly(uint64_t bytes) { return allocate_charged(gpu, driver, bytes); }

void Scene::free_directly(uint64_t address) { expect(free_charged(gpu, driver, address)); }

void Scene::check() {
    gpu.refresh();
    REQUIRE(driver.fault() == std::string());
    REQUIRE(good);
    REQUIRE(gpu.budget().settled(gpu.budget().snapshot()));
    REQUIRE(gpu.budget().used() == driver.held());
    REQUIRE(recorded_bytes() == driver.held() - driver.own());
    REQUIRE(caches.statistics(gpu).allocated.current == 0);
    caches.trim(gpu, ~0ull);
    REQUIRE(driver.held() == driver.own());
    REQUIRE(gpu.budget().used() == driver.own());
    REQUIRE(driver.fault() == std::string());
}

}  // namespace tests

}  // namespace cuslice
