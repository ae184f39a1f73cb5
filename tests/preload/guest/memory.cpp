// SPDX-License-Identifier: Apache-2.0
// Allocations of every kind.
#include <dlfcn.h>

#include <cstdint>
#include <map>

#include "include/cuslice.h"
#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

// Functions that take a size and whose memory cuMemFree frees. "ways" names them, and programs_test.cpp checks limit,
// refusal and free of each. A row uses every argument that adds to the size. Where there are other arguments, its
// second call has one that the driver refuses, whatever the size.
struct Way {
    using Call = CUresult(const Driver& driver, CUdeviceptr* out, size_t bytes);
    const char* name;
    Call* allocate;
    Call* refused = nullptr;
};
constexpr Way kWays[] = {
    {"managed", [](auto& d, auto* out, auto bytes) { return d.cuMemAllocManaged(out, bytes, CU_MEM_ATTACH_GLOBAL); },
     [](auto& d, auto* out, auto bytes) { return d.cuMemAllocManaged(out, bytes, 0); }},
};
constexpr std::string_view kRefused = "refused-";

// One allocation of the kind that `how` names, of this many bytes, into the named place.
CUresult allocate(Program& p, const std::string& how, size_t bytes, CUdeviceptr* out) {
    const Driver& d = p.driver;
    if (how == "old") {
        CUdeviceptr_v1 low = 0;
        const CUresult result = d.cuMemAlloc(&low, static_cast<unsigned>(bytes));
        *out = low;
        return result;
    }
    for (const Way& way : kWays) {
        if (how == way.name)
            return way.allocate(d, out, bytes);
        if (way.refused && how == std::string(kRefused) + way.name)
            return way.refused(d, out, bytes);
    }
    if (how == "async")
        return d.cuMemAllocAsync(out, bytes, nullptr);
    if (how.rfind("on=", 0) == 0)
        return d.cuMemAllocAsync(out, bytes, p.streams.at(how.substr(3)));
    if (how == "ptsz")
        return d.cuMemAllocAsync_ptsz(out, bytes, nullptr);
    if (how.rfind("pool=", 0) == 0)
        return d.cuMemAllocFromPoolAsync(out, bytes, p.pools.at(how.substr(5)), nullptr);
    if (how == "pitch") {  // rows of one byte, which every driver pads
        size_t pitch = 0;
        return d.cuMemAllocPitch_v2(out, &pitch, 1, bytes, 4);
    }
    return d.cuMemAlloc_v2(out, bytes);
}

std::string do_allocate(Program& p, const std::string& how, const std::string& name, size_t bytes) {
    CUdeviceptr block = 0;
    const CUresult result = allocate(p, how, bytes, &block);
    if (result == CUDA_SUCCESS)
        p.blocks[name] = block;
    return answer(result, block);
}

/// The place of a pool: none, device, host or node, and the device.
CUmemLocation place_of(const std::string& name, int device) {
    const std::map<std::string, CUmemLocationType> kinds = {{"none", CU_MEM_LOCATION_TYPE_NONE},
                                                            {"device", CU_MEM_LOCATION_TYPE_DEVICE},
                                                            {"host", CU_MEM_LOCATION_TYPE_HOST},
                                                            {"node", CU_MEM_LOCATION_TYPE_HOST_NUMA}};
    return {kinds.at(name), device};
}

CUmemAllocationType type_of(const std::string& name) {
    return name == "managed" ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
}

}  // namespace

void add_memory_commands(Commands& commands) {
    // alloc NAME BYTES [HOW]
    commands["alloc"] = [](Program& p, const Words& w) {
        return do_allocate(p, w.size() > 2 ? w[2] : "plain", w.at(0), number(w.at(1)));
    };
    // workspace FILE NAME BYTES: allocated by a library of this file
    commands["workspace"] = [](Program& p, const Words& w) {
        void* const library = dlopen(w.at(0).c_str(), RTLD_NOW);
        if (!library)
            return std::string(dlerror());
        auto* const allocate =
            reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t)>(dlsym(library, "made_up_workspace"));
        CUdeviceptr block = 0;
        const CUresult result = allocate(&block, number(w.at(2)));
        if (result == CUDA_SUCCESS)
            p.blocks[w.at(1)] = block;
        return answer(result, block);
    };
    // ways: the names in kWays; and those of their calls that are refused, with `refused-` before them
    commands["ways"] = [](Program&, const Words&) {
        std::string names;
        for (const Way& way : kWays) {
            names += (names.empty() ? "" : " ") + std::string(way.name);
            if (way.refused)
                names += " " + std::string(kRefused) + way.name;
        }
        return names;
    };
    // fill BYTES [HOW]: allocations of one size until one is refused; its CUresult, and how many were granted
    commands["fill"] = [](Program& p, const Words& w) {
        for (unsigned granted = 0;; ++granted) {
            CUdeviceptr block = 0;
            const CUresult result = allocate(p, w.size() > 1 ? w[1] : "plain", number(w.at(0)), &block);
            if (result != CUDA_SUCCESS)
                return answer(result, granted);
            p.blocks["fill" + std::to_string(p.blocks.size())] = block;
        }
    };
    // pitch NAME WIDTH HEIGHT: the pitch too
    commands["pitch"] = [](Program& p, const Words& w) {
        CUdeviceptr block = 0;
        size_t pitch = 0;
        const CUresult result = p.driver.cuMemAllocPitch_v2(&block, &pitch, number(w.at(1)), number(w.at(2)), 4);
        if (result == CUDA_SUCCESS)
            p.blocks[w.at(0)] = block;
        return answer(result, pitch);
    };
    commands["free"] = [](Program& p, const Words& w) { return answer(p.driver.cuMemFree_v2(p.blocks.at(w.at(0)))); };
    commands["freeold"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemFree(static_cast<CUdeviceptr_v1>(p.blocks.at(w.at(0)))));
    };
    // stream NAME [PRIORITY]: its handle
    commands["stream"] = [](Program& p, const Words& w) {
        CUstream& stream = p.streams[w.at(0)];
        constexpr unsigned kFlags = CU_STREAM_NON_BLOCKING;
        const CUresult result = w.size() > 1 ? p.driver.cuStreamCreateWithPriority(&stream, kFlags, std::stoi(w[1]))
                                             : p.driver.cuStreamCreate(&stream, kFlags);
        return answer(result, reinterpret_cast<uintptr_t>(stream));
    };
    // priority [STREAM]: of the legacy default one without a name
    commands["priority"] = [](Program& p, const Words& w) {
        int priority = 99;
        const CUresult result = p.driver.cuStreamGetPriority(w.empty() ? nullptr : p.streams.at(w[0]), &priority);
        return answer(result, priority);
    };
    commands["unstream"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuStreamDestroy_v2(p.streams.at(w.at(0))));
    };
    // freeasync NAME [STREAM]
    commands["freeasync"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemFreeAsync(p.blocks.at(w.at(0)), w.size() > 1 ? p.streams.at(w[1]) : nullptr));
    };
    // freeall: whatever is known, the last first; the first error
    commands["freeall"] = [](Program& p, const Words&) {
        CUresult first = CUDA_SUCCESS;
        for (const auto& [name, block] : p.blocks) {
            const CUresult result = p.driver.cuMemFree_v2(block);
            if (first == CUDA_SUCCESS)
                first = result;
        }
        p.blocks.clear();
        return answer(first);
    };
    commands["freeat"] = [](Program& p, const Words& w) { return answer(p.driver.cuMemFree_v2(number(w.at(0)))); };
    // put NAME NUMBER, look NAME: the block's first four bytes
    commands["put"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemsetD32_v2(p.blocks.at(w.at(0)), static_cast<unsigned>(number(w.at(1))), 1));
    };
    commands["look"] = [](Program& p, const Words& w) {
        unsigned found = 0;
        const CUresult result = p.driver.cuMemcpyDtoH_v2(&found, p.blocks.at(w.at(0)), sizeof found);
        return answer(result, found);
    };
    commands["info"] = [](Program& p, const Words&) {
        size_t free = 0, total = 0;
        const CUresult result = p.driver.cuMemGetInfo_v2(&free, &total);
        return answer(result, free, total);
    };
    // memorystats DEVICE [SIZE]: what the preloaded library says of its caches, in the order of cuslice.h
    commands["memorystats"] = [](Program&, const Words& w) -> std::string {
        const auto ask = reinterpret_cast<cuslice_memory_stats_function*>(dlsym(RTLD_DEFAULT, "cuslice_memory_stats"));
        if (!ask)
            return "there is no cuslice_memory_stats";
        cuslice_stats stats{};
        stats.size = w.size() > 1 ? number(w[1]) : sizeof stats;
        const int result = ask(std::stoi(w.at(0)), &stats);
        std::string text = std::to_string(result) + " " + std::to_string(stats.size);
        for (const cuslice_tally& tally : {stats.allocated, stats.requested, stats.active, stats.reserved})
            for (const uint64_t bytes : {tally.current, tally.peak, tally.allocated, tally.freed})
                text += " " + std::to_string(bytes);
        for (const uint64_t count : {stats.allocations, stats.frees, stats.segments, stats.retries, stats.ooms,
                                     stats.syncs, stats.largest_free, stats.own_memory})
            text += " " + std::to_string(count);
        return text;
    };
    // setslice DEVICE BYTES, and getslice DEVICE: the limit that the program sets for itself; all: as it was given
    commands["setslice"] = [](Program&, const Words& w) -> std::string {
        const auto set = reinterpret_cast<cuslice_set_slice_function*>(dlsym(RTLD_DEFAULT, "cuslice_set_slice"));
        const uint64_t bytes = w.at(1) == "all" ? UINT64_MAX : number(w[1]);
        return set ? std::to_string(set(std::stoi(w.at(0)), bytes)) : "there is no cuslice_set_slice";
    };
    commands["getslice"] = [](Program&, const Words& w) -> std::string {
        const auto get = reinterpret_cast<cuslice_get_slice_function*>(dlsym(RTLD_DEFAULT, "cuslice_get_slice"));
        cuslice_own_slice slice{};
        slice.size = sizeof slice;
        if (!get)
            return "there is no cuslice_get_slice";
        const int result = get(std::stoi(w.at(0)), &slice);
        return std::to_string(result) + " " + std::to_string(slice.limit) + " " + std::to_string(slice.used) + " " +
               std::to_string(slice.refused) + " " + std::to_string(slice.driver);
    };
    commands["info32"] = [](Program& p, const Words&) {
        unsigned free = 0, total = 0;
        const CUresult result = p.driver.cuMemGetInfo(&free, &total);
        return answer(result, free, total);
    };
    // pool NAME DEVICE [MOST BYTES]; a pool called "default" is the device's own
    commands["pool"] = [](Program& p, const Words& w) {
        CUmemoryPool pool = nullptr;
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, std::stoi(w.at(1))};
        if (w.size() > 2)
            properties.maxSize = number(w[2]);
        const CUresult result = w[0] == "default" ? p.driver.cuDeviceGetDefaultMemPool(&pool, std::stoi(w[1]))
                                                  : p.driver.cuMemPoolCreate(&pool, &properties);
        if (result == CUDA_SUCCESS)
            p.pools[w.at(0)] = pool;
        return answer(result);
    };
    // poolat NAME pinned|managed PLACE [DEVICE]; presetpool: the default one of that place
    commands["poolat"] = [](Program& p, const Words& w) {
        CUmemoryPool pool = nullptr;
        CUmemPoolProps properties{};
        properties.allocType = type_of(w.at(1));
        properties.location = place_of(w.at(2), w.size() > 3 ? std::stoi(w[3]) : 0);
        const CUresult result = p.driver.cuMemPoolCreate(&pool, &properties);
        if (result == CUDA_SUCCESS)
            p.pools[w.at(0)] = pool;
        return answer(result);
    };
    commands["presetpool"] = [](Program& p, const Words& w) {
        CUmemoryPool pool = nullptr;
        CUmemLocation place = place_of(w.at(2), w.size() > 3 ? std::stoi(w[3]) : 0);
        const CUresult result = p.driver.cuMemGetDefaultMemPool(&pool, &place, type_of(w.at(1)));
        if (result == CUDA_SUCCESS)
            p.pools[w.at(0)] = pool;
        return answer(result);
    };
    // usepool NAME: from now on the device's
    commands["usepool"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuDeviceSetMemPool(0, p.pools.at(w.at(0))));
    };
    commands["unpool"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemPoolDestroy(p.pools.at(w.at(0))));
    };
    commands["trim"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemPoolTrimTo(p.pools.at(w.at(0)), number(w.at(1))));
    };
    // keep NAME BYTES: the release threshold
    commands["keep"] = [](Program& p, const Words& w) {
        cuuint64_t bytes = number(w.at(1));
        return answer(p.driver.cuMemPoolSetAttribute(p.pools.at(w.at(0)), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
    };
}

}  // namespace guest
