#include "fake/driver/green_context.h"

#include "fake/driver/primary.h"
#include "fake/driver/state.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {
namespace {

constinit HandleTable<Green, CUgreenCtx, HandleKind::GreenContext> greens;

void give_back(Green& green) {
    if (!green.charged) return;
    green.charged = false;
    green.gpu->release(green.gpu->spec.context);
    green.gpu->books.note_contexts(-static_cast<std::int64_t>(green.gpu->spec.context), -1);
}

void drain_streams_of(CUgreenCtx handle, Context& primary) {
    for (const Lane::Mark& mark : work_of(primary, handle)) Lane::wait(mark);
}

}  // namespace

CUresult create_green(Gpu& gpu, unsigned multiprocessors, CUgreenCtx& out) {
    const std::lock_guard hold(driver().lock);
    Context* primary = nullptr;
    if (const CUresult bad = retain_primary(gpu, primary); bad != CUDA_SUCCESS) return bad;
    if (!gpu.charge(gpu.spec.context)) {
        release_primary(gpu);  // made just now, or somebody else's: nothing of ours runs in it
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu.books.note_contexts(static_cast<std::int64_t>(gpu.spec.context), 1);
    const auto [handle, green] = greens.create();
    green->gpu = &gpu;
    green->multiprocessors = multiprocessors;
    green->name = &create_name(*primary, handle);
    out = handle;
    return CUDA_SUCCESS;
}

CUresult destroy_green(CUgreenCtx handle) {
    Green* green = greens.find(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (live_green(handle)) drain_streams_of(handle, *green->name->base);
    drain_primary(*green->gpu, true);
    const std::lock_guard hold(driver().lock);
    if ((green = greens.find(handle)) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Gpu& gpu = *green->gpu;
    give_back(*green);
    contexts.destroy(green->name->handle);
    greens.destroy(handle);
    release_primary(gpu);  // the program may have released it more often than it retained it
    return CUDA_SUCCESS;
}

void end_greens(const Context& primary) {
    greens.each([&](CUgreenCtx, Green& green) {
        if (green.name->base != &primary) return;
        green.name->active = false;
        give_back(green);
    });
}

Green* find_green(CUgreenCtx handle) { return greens.find(handle); }

bool live_green(CUgreenCtx handle) { return name_of_green(handle) != nullptr; }

Context* name_of_green(CUgreenCtx handle) {
    const Green* green = greens.find(handle);
    return green != nullptr && green->name->active ? green->name : nullptr;
}

}  // namespace cuslice::fake
