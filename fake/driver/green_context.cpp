// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/green_context.h"

namespace cuslice::fake {
namespace {

constinit HandleTable<Green, CUgreenCtx, HandleKind::GreenContext> greens;

void give_back(Green& green) {
    if (!green.charged)
        return;
    green.charged = false;
    green.gpu->release(green.gpu->spec.context);
    green.gpu->books.note_contexts(-static_cast<int64_t>(green.gpu->spec.context), -1);
}

}  // namespace

CUresult create_green(Context& primary, unsigned multiprocessors, CUgreenCtx& out) {
    Gpu& gpu = *primary.gpu;
    if (!gpu.charge(gpu.spec.context))
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu.books.note_contexts(static_cast<int64_t>(gpu.spec.context), 1);
    const auto [handle, green] = greens.create();
    green->gpu = &gpu;
    green->multiprocessors = multiprocessors;
    green->name = &create_name(primary, handle);
    out = handle;
    return CUDA_SUCCESS;
}

void destroy_green(CUgreenCtx handle) {
    Green& green = *greens.find(handle);
    give_back(green);
    contexts.destroy(green.name->handle);
    greens.destroy(handle);
}

void end_greens(const Context& primary) {
    greens.each([&](CUgreenCtx, Green& green) {
        if (green.name->base != &primary)
            return;
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
