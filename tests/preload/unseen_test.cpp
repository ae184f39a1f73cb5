// SPDX-License-Identifier: Apache-2.0
// A context that no hook has seen, as NVIDIA's runtime makes it, and each function that takes memory as the first call
// that counts: never past the limit by the fake's accounting.
#include <algorithm>
#include <set>

#include "tests/preload/machine.h"
#include "tests/preload/scene.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {
namespace {

/// Hooked functions that take no memory: they end something, tell something, or hand over what is there already. A
/// function of the list that stands neither here nor in kFirsts of guest/first.cpp fails the first case.
const std::set<std::string> kTakeNothing{
    "cuArrayDestroy",
    "cuCtxAttach",
    "cuCtxDestroy",
    "cuCtxDestroy_v2",
    "cuCtxDetach",
    "cuDestroyExternalMemory",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxReset_v2",
    "cuDeviceTotalMem",
    "cuDeviceTotalMem_v2",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuGraphExecDestroy",
    "cuGreenCtxDestroy",
    "cuInit",
    "cuIpcCloseMemHandle",
    "cuIpcGetMemHandle",
    "cuLibraryGetKernel",
    "cuLibraryUnload",
    "cuMemExportToShareableHandle",
    "cuMemFree",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemGetAddressRange",
    "cuMemGetAddressRange_v2",
    "cuMemGetHandleForAddressRange",
    "cuMemGetInfo",
    "cuMemGetInfo_v2",
    "cuMemMap",
    "cuMemMapArrayAsync",
    "cuMemPoolDestroy",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemUnmap",
    "cuMipmappedArrayDestroy",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuMulticastUnbind",
    "cuPointerGetAttribute",
    "cuPointerGetAttributes",
    "cuPointerSetAttribute",
    "cuStreamBeginCapture",
    "cuStreamBeginCaptureToGraph",
    "cuStreamBeginCapture_v2",
    "cuStreamDestroy",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
};
/// Memory that another process or another API has made: its owner pays, so that the call takes nothing here
/// (sharing_test.cpp), or an image in a form that guests don't make.
const std::set<std::string> kOfOthers{
    "cuExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedMipmappedArray",
    "cuImportExternalMemory",          "cuIpcOpenMemHandle",
    "cuIpcOpenMemHandle_v2",           "cuMemPoolImportPointer",
    "cuModuleLoadFatBinary",
};

constexpr uint64_t kContext = 300 * kMiB;

/// How a slice is made, its size, and what of the first request is more than there is beside the context.
struct Mode {
    const char* name;
    Words settings;
    uint64_t limit, most;  // `most`: by the accounting, with other partitions' share of the context
    bool job = false;
};
const Mode kModes[] = {
    {"direct", {}, kGiB, kGiB},
    {"growth", {"CUSLICE_ALLOCATOR=growth"}, kGiB, kGiB},
    {"prealloc", {"CUSLICE_ALLOCATOR=prealloc"}, kGiB, kGiB},
    {"deferred", {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"}, kGiB, kGiB},
    {"strict", {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=strict"}, kGiB, kGiB},
    {"split", {"CUSLICE_SPLIT=0=500MiB+500MiB"}, 500 * kMiB, 500 * kMiB + kContext / 2},
    {"job", {}, kGiB, kGiB, true},
};

/// Multicast objects need Hopper and NVLink. `keys`: of the driver.
std::string machine_file(const Folder& folder, const std::string& keys) {
    return folder.write("machine.toml", "[driver]\n" + keys +
                                            "\n[[gpu]]\nprofile = \"laptop-2g\"\ncompute-capability = \"9.0\"\n"
                                            "nvlink = true\ncontext = \"300MiB\"\n");
}

/// Only the driver knows how much these take: they are undone when it has taken it.
bool afterwards(const std::string& symbol) {
    for (const char* family :
         {"cuArray", "cuMipmapped", "cuCtx", "cuDevicePrimary", "cuGreen", "cuModule", "cuLibrary"})
        if (symbol.starts_with(family))
            return true;
    return false;
}

std::vector<std::string> firsts() {
    Scene scene("1xlaptop-2g", {});
    return split_words(scene.guest.ask("firsts"));
}

struct Program {
    Program(const Mode& mode, const Machine& on) : machine(on) {
        constexpr const char* kNoQuestion = "GUEST_LETS_FREE_CHANGE=1";  // which would show the context
        if (mode.job) {
            guest = machine.start({"--limit", "1GiB", "--headroom", "16MiB"}, {kNoQuestion});
        } else {
            Words settings = joined(mode.settings, {kNoQuestion, "CUSLICE_HEADROOM=16MiB"});
            if (mode.limit == kGiB)
                settings.push_back("CUSLICE_LIMIT=1GiB");
            guest =
                std::make_unique<Guest>(Guest::route("linked"), sliced(machine.fake, machine.books.path(), settings));
        }
        REQUIRE(guest->code("init") == kSuccess);
    }
    Held held() const { return books_of(machine.books.path(), guest->pid()); }

    const Machine& machine;
    std::unique_ptr<Guest> guest;
};

/// All that one function gives, with the context as `before` makes it.
void check_first(const std::string& symbol, const Mode& mode, const Machine& machine, const Words& before) {
    INFO(symbol << " in " << mode.name << " after " << before.back());
    const Program program(mode, machine);
    // The driver footprint is charged to all partitions.
    const bool by_driver = afterwards(symbol) && !symbol.starts_with("cuArray") && !symbol.starts_with("cuMipmapped");
    const uint64_t most = mode.limit == kGiB || !by_driver ? mode.most : 2 * mode.limit;
    for (const std::string& command : before)
        REQUIRE(program.guest->code(command) == kSuccess);
    const std::string once = "first " + symbol + " " + bytes(mode.limit - kContext / 2) + " 1";
    const int refused = program.guest->code(once);
    const Held first = program.held();
    CHECK(first.used <= most);
    const bool takes_bytes = !symbol.starts_with("cuCtxCreate") && symbol != "cuDevicePrimaryCtxRetain" &&
                             symbol != "cuGreenCtxCreate" && symbol != "cuCtxSetLimit";
    if (takes_bytes && mode.limit == kGiB)
        CHECK(refused != kSuccess);
    program.guest->ask("first " + symbol + " " + bytes(48 * kMiB) + " 40");
    const Held full = program.held();
    CHECK(full.used <= most);
    CHECK(full.peak <= most + (afterwards(symbol) ? mode.limit : 0));
    CHECK(program.guest->finish() == 0);
}

TEST_CASE("each hooked function is known to take memory, or to take none") {
    std::set<std::string> known = kTakeNothing;
    known.insert(kOfOthers.begin(), kOfOthers.end());
    for (std::string symbol : firsts()) {
        if (symbol.back() == '+')
            symbol.pop_back();
        CHECK(known.insert(symbol).second);
    }
    for (const FunctionRow& row : kFunctionRows) {
        // The forms for the other default stream are the same templates.
        if (row.route != Route::hook || row.per_thread)
            continue;
        CAPTURE(row.symbol);
        CHECK(known.contains(std::string(row.symbol)));
    }
}

TEST_CASE("whatever takes memory first, a context that no hook saw is charged before it") {
    const size_t which = GENERATE(range(size_t{0}, std::size(kModes)));
    const Folder folder;
    const Machine machine(machine_file(folder, ""));
    for (std::string symbol : firsts()) {
        const bool anywhere = symbol.back() == '+';
        if (anywhere)
            symbol.pop_back();
        check_first(symbol, kModes[which], machine, {"hidden 0"});
        if (anywhere)
            check_first(symbol, kModes[which], machine, {"hidden 0", "current none"});
    }
}

TEST_CASE("the same where the context is known, and where NVML lists no process") {
    const std::string list = GENERATE("listed", "empty");
    const Folder folder;
    const Machine machine(machine_file(folder, "process-list = \"" + list + "\""));
    for (std::string symbol : firsts()) {
        const bool anywhere = symbol.back() == '+';
        if (anywhere)
            symbol.pop_back();
        check_first(symbol, kModes[0], machine, {list == "empty" ? "hidden 0" : "retain 0"});
        if (anywhere && list == "empty")
            check_first(symbol, kModes[0], machine, {"hidden 0", "current none"});
    }
}

TEST_CASE("a context that comes unseen after the first memory is charged before the next") {
    const Folder folder;
    const Machine machine(machine_file(folder, ""));
    const Program program(kModes[0], machine);
    REQUIRE(program.guest->code("first cuMemCreate " + bytes(48 * kMiB) + " 1") == kSuccess);
    REQUIRE(program.guest->code("hidden 0") == kSuccess);
    program.guest->ask("first cuMemCreate " + bytes(48 * kMiB) + " 40");
    CHECK(program.held().used <= kGiB);
    CHECK(program.held().used > kGiB - 80 * kMiB);
}

}  // namespace
namespace {

void fill_and_free(Guest& guest) {
    enter_device(guest);
    REQUIRE(guest.code("fill " + bytes(32 * kMiB)) == kOutOfMemory);
    REQUIRE(guest.code("freeall") == kSuccess);
}

}  // namespace

TEST_CASE("what launches took for local memory comes out of an idle cache when another kernel is looked up") {
    const std::string allocator = GENERATE("growth", "prealloc");
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=" + allocator});
    fill_and_free(scene.guest);
    REQUIRE(scene.held().used <= kGiB);
    // 6144 threads can be resident.
    REQUIRE(scene.guest.code("localkernels m " + bytes(1024 + 100 * kMiB / 6144)) == kSuccess);
    CHECK(scene.held().used > kGiB);
    REQUIRE(scene.guest.code("lookup m second") == kSuccess);
    CHECK(scene.held().used <= kGiB);
}

TEST_CASE("what is said to be free can be had in one block, where launches took some of the headroom") {
    const std::string allocator = GENERATE("direct", "growth");
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=" + allocator});
    fill_and_free(scene.guest);
    const uint64_t before = scene.free();
    REQUIRE(scene.guest.code("localkernels m " + bytes(1024 + 41 * kMiB / 6144)) == kSuccess);
    REQUIRE(scene.guest.code("lookup m second") == kSuccess);
    const uint64_t free = scene.free();
    CHECK(free <= before - 40 * kMiB);
    CHECK(scene.guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(scene.held().used <= kGiB);
}

}  // namespace cuslice::tests
