// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/timing.h"

#include <cstdlib>
#include <cstring>

#include "fake/books/books.h"
#include "fake/driver/context.h"
#include "fake/driver/occupancy.h"
#include "fake/driver/time_client.h"
#include "fake/time/costs.h"
#include "fake/time/futex.h"

namespace cuslice::fake {
namespace {

auto& costs() {
    static auto* one = new KernelCosts;
    return *one;
}

uint64_t bytes_of(const Extents& extents) {
    uint64_t bytes = 0;
    for (const Extent& extent : extents)
        bytes += extent.size;
    return bytes;
}

const GpuSpec* current_gpu() {
    const Context* context = live_context(current_handle);
    return context == nullptr ? nullptr : &context->gpu->spec;
}

}  // namespace

bool start_timing(std::string& error) {
    const char *cost = std::getenv("CUSLICE_FAKE_COST"), *clock = std::getenv("CUSLICE_FAKE_CLOCK");
    const bool is_virtual = clock != nullptr && std::strcmp(clock, "virtual") == 0;
    if (clock != nullptr && *clock != '\0' && !is_virtual && std::strcmp(clock, "real") != 0) {
        error = "CUSLICE_FAKE_CLOCK: '" + std::string(clock) + "' is neither real nor virtual";
        return false;
    }
    if (cost == nullptr || *cost == '\0')
        return true;
    if (!costs().parse(cost, error)) {
        error = "CUSLICE_FAKE_COST: " + error;
        return false;
    }
    static auto* client = new TimeClient;
    if (!client->join(books_folder(), is_virtual, error))
        return false;
    time_client = client;
    return true;
}

void end_timing() {
    if (time_client != nullptr)
        time_client->leave();
}

Work kernel_time(const KernelInfo& info, const LaunchShape& shape, const GpuSpec& gpu) {
    if (time_client == nullptr)
        return {};
    const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    const auto threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    const int at_once = blocks_per_multiprocessor(info, gpu, threads, shape.shared);
    return costs().kernel(info.name, blocks, static_cast<uint64_t>(at_once), gpu);
}

Work copy_time(const Extents& to, const Extents& from, size_t rows) {
    const GpuSpec* const gpu = time_client == nullptr ? nullptr : current_gpu();
    if (gpu == nullptr)
        return {};
    const bool to_host = on_host(to), from_host = on_host(from);
    Engine engine = Engine::compute;
    if (to_host)
        engine = from_host ? Engine::none : Engine::copy_out;
    else if (from_host)
        engine = Engine::copy_in;
    return copy_of(engine, bytes_of(to) * rows, *gpu);
}

Work fill_time(const Extents& rows) {
    const GpuSpec* const gpu = time_client == nullptr ? nullptr : current_gpu();
    return gpu == nullptr ? Work{} : fill_of(bytes_of(rows), *gpu);
}

CallTime::CallTime(uint64_t nanoseconds) {
    if (time_client != nullptr && !time_client->is_virtual())
        end_ = monotonic_time() + nanoseconds;
}

CallTime::~CallTime() {
    while (end_ != 0 && monotonic_time() < end_) {
    }
}

}  // namespace cuslice::fake
