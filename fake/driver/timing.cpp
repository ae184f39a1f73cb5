// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/timing.h"

#include <cstdlib>
#include <cstring>

#include "fake/books/books.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/graph_work.h"
#include "fake/driver/occupancy.h"
#include "fake/driver/resolve.h"
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

/// The first parameter, if it can be a pointer.
bool first_pointer(const KernelInfo& info, const LaunchArguments& arguments, Address& pointer) {
    const bool none = info.parameters_known && (info.parameters.empty() || info.parameters[0].size != sizeof pointer);
    if (none || arguments.said_before)
        return false;
    if (arguments.parameters != nullptr) {
        std::memcpy(&pointer, arguments.parameters[0], sizeof pointer);
        return true;
    }
    if (arguments.extra == nullptr)
        return false;
    const std::vector<unsigned char> buffer = buffer_in(arguments.extra);
    if (buffer.size() >= sizeof pointer)
        std::memcpy(&pointer, buffer.data(), sizeof pointer);
    return buffer.size() >= sizeof pointer;
}

/// True as well if the word has been unmapped.
bool is_set(const Extents& word) {
    uint32_t value = 0;
    const Extents here{{nullptr, reinterpret_cast<Address>(&value), sizeof value, nullptr, nullptr}};
    return copy_extents(here, word) != CUDA_SUCCESS || value != 0;
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
    if (!make_books_folder(error) || !client->join(books_folder(), is_virtual, error))
        return false;
    time_client = client;
    return true;
}

void end_timing() {
    if (time_client != nullptr)
        time_client->leave();
}

CUresult kernel_needs(const KernelInfo& info, const LaunchShape& shape, const LaunchArguments& arguments,
                      const GpuSpec& gpu, WorkQueue::Needs& needs) {
    if (time_client == nullptr)
        return CUDA_SUCCESS;
    const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    const auto threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    const int at_once = blocks_per_multiprocessor(info, gpu, threads, shape.shared);
    needs.work = costs().kernel(info.name, blocks, static_cast<uint64_t>(at_once), gpu);
    if (!needs.work.held)
        return CUDA_SUCCESS;
    Address word = 0;
    if (!first_pointer(info, arguments, word))
        CUSLICE_UNSUPPORTED("a kernel that waits (CUSLICE_FAKE_COST) for a word that its first parameter doesn't name");
    Extents extents;
    CUSLICE_TRY(resolve_device(word, sizeof(uint32_t), Access::Read, extents));
    needs.ended = [extents] { return is_set(extents); };
    return CUDA_SUCCESS;
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
