// SPDX-License-Identifier: Apache-2.0
// Work that takes time. On the virtual clock all times are exact.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/peer_process.h"

using namespace fake_test;

namespace {

const Environment timed = {{"CUSLICE_FAKE", "h200"},
                           {"CUSLICE_FAKE_COST", "ms*=1ms,wide=2ms,narrow=2ms,wait*=until"},
                           {"CUSLICE_FAKE_CLOCK", "virtual"}};

Environment with(const std::string& name, const std::string& value) {
    Environment all = timed;
    all[name] = value;
    return all;
}

constexpr const char* kModule = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry ms() { ret; }
.visible .entry wide() { ret; }
.visible .entry narrow() { ret; }
.visible .entry wait(.param .u64 word) { ret; }
.visible .entry wait_for_nothing() { ret; }
)";

/// A process's first context, its kernels, and times of its events in milliseconds.
struct Device {
    explicit Device(const Report& to) : report(to) {
        context = use_device(report);
        EXPECT_EQUAL(cuModuleLoadData(&module, kModule), CUDA_SUCCESS);
    }
    CUstream stream() const {
        CUstream made = nullptr;
        EXPECT_EQUAL(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        return made;
    }
    CUevent event() const {
        CUevent made = nullptr;
        EXPECT_EQUAL(cuEventCreate(&made, 0), CUDA_SUCCESS);
        return made;
    }
    CUevent record(CUstream stream) const {
        const CUevent made = event();
        EXPECT_EQUAL(cuEventRecord(made, stream), CUDA_SUCCESS);
        return made;
    }
    CUfunction function(const char* name) const {
        CUfunction found = nullptr;
        EXPECT_EQUAL(cuModuleGetFunction(&found, module, name), CUDA_SUCCESS);
        return found;
    }
    void launch(const char* name, CUstream stream, unsigned blocks = 1) const {
        EXPECT_EQUAL(cuLaunchKernel(function(name), blocks, 1, 1, 1024, 1, 1, 0, stream, nullptr, nullptr),
                     CUDA_SUCCESS);
    }
    /// Waits for the later one.
    float between(CUevent first, CUevent last) const {
        float milliseconds = -1;
        EXPECT_EQUAL(cuEventSynchronize(last), CUDA_SUCCESS);
        EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, first, last), CUDA_SUCCESS);
        return milliseconds;
    }

    const Report& report;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
};

void run(const std::function<void(const Device&, const Report&)>& body, const Environment& environment = timed) {
    CHECK(in_child(environment, [&](const Report& report) {
              const Device device(report);
              body(device, report);
          }) == "");
}

/// The same beside another process, which is there first: no child of a process with a driver can use it.
void run_beside(const std::function<void(const Device&, const Peer&)>& other,
                const std::function<void(const Device&, const Report&, const Peer&)>& body) {
    CHECK(in_child(timed, [&](const Report& report) {
              const Peer peer([&](const Peer& self) { other(Device(report), self); });
              body(Device(report), report, peer);
          }) == "");
}

/// The pid of this machine's; there is one.
pid_t timekeeper() {
    const std::string folder = std::getenv("CUSLICE_FAKE_DIR");
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "cmdline");
        std::string command, argument;
        std::getline(file, command, '\0');
        std::getline(file, argument, '\0');
        if (command.ends_with("/timekeeper") && argument == folder)
            return std::stoi(entry.path().filename());
    }
    return 0;
}

/// Sets the other's word, and has the GPU wait until its own is set.
void meet(const Device& device, CUdeviceptr word, CUdeviceptr others) {
    const Report& report = device.report;
    const CUstream stream = device.stream();
    void* parameters[] = {&word};
    EXPECT_EQUAL(cuMemsetD32Async(others, 1, 1, stream), CUDA_SUCCESS);
    EXPECT_EQUAL(cuLaunchKernel(device.function("wait"), 1000, 1, 1, 1024, 1, 1, 0, stream, parameters, nullptr),
                 CUDA_SUCCESS);
    EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

std::atomic<int> calls{0};
void CUDA_CB count_call(void*) { calls++; }
void CUDA_CB wait_for_peer(void* peer) { static_cast<const Peer*>(peer)->receive<int>(); }

}  // namespace

TEST_CASE("kernels take the time that their cost says, and events are reached then") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        const CUevent begin = device.record(stream);
        for (int i = 0; i < 3; i++)
            device.launch("ms", stream);
        const CUevent end = device.record(stream);
        EXPECT_EQUAL(device.between(begin, end), 3.0F);
        EXPECT_EQUAL(cuStreamQuery(stream), CUDA_SUCCESS);
    });
}

TEST_CASE("work that isn't done says so, and whoever asks often enough sees its end") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        device.launch("ms", stream);
        const CUevent end = device.record(stream);
        float milliseconds = 0;
        EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, end, end), CUDA_ERROR_NOT_READY);
        int looks = 0;
        while (cuEventQuery(end) == CUDA_ERROR_NOT_READY)
            looks++;
        EXPECT(looks < 1000);
        EXPECT_EQUAL(cuStreamQuery(stream), CUDA_SUCCESS);
    });
}

TEST_CASE("kernels of two streams overlap where there is room") {
    run([](const Device& device, const Report& report) {
        const auto milliseconds = [&](unsigned blocks) {
            const CUstream one = device.stream(), other = device.stream();
            const CUevent begin = device.record(one);
            device.launch("wide", one, blocks);
            device.launch("narrow", other, blocks);
            EXPECT_EQUAL(cuStreamSynchronize(one), CUDA_SUCCESS);
            EXPECT_EQUAL(cuStreamWaitEvent(one, device.record(other), 0), CUDA_SUCCESS);
            return device.between(begin, device.record(one));
        };
        EXPECT_EQUAL(milliseconds(66), 2.0F);   // of 132 multiprocessors
        EXPECT_EQUAL(milliseconds(264), 4.0F);  // two blocks fit on each
    });
}

TEST_CASE("copies take as long as their bytes, beside kernels") {
    run([](const Device& device, const Report& report) {
        constexpr size_t bytes = 64 * MiB;
        CUdeviceptr memory = 0;
        void* host = nullptr;
        EXPECT_EQUAL(cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemAllocHost(&host, bytes), CUDA_SUCCESS);
        const CUstream copies = device.stream(), kernels = device.stream();
        const CUevent begin = device.record(copies);
        EXPECT_EQUAL(cuMemcpyHtoDAsync(memory, host, bytes, copies), CUDA_SUCCESS);
        const CUevent copied = device.record(copies);
        device.launch("ms", kernels);
        const CUevent computed = device.record(kernels);
        const float copy = device.between(begin, copied);
        EXPECT(copy > 1.3F && copy < 1.4F);  // PCI Express 5, 16 lanes
        EXPECT_EQUAL(device.between(begin, computed), 1.0F);
    });
}

TEST_CASE("a host function is called when what is before it has ended, and holds what is behind it") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        const CUevent begin = device.record(stream);
        device.launch("ms", stream);
        EXPECT_EQUAL(cuLaunchHostFunc(stream, count_call, nullptr), CUDA_SUCCESS);
        const CUevent called = device.record(stream);
        device.launch("ms", stream);
        const CUevent end = device.record(stream);
        EXPECT_EQUAL(device.between(begin, end), 2.0F);
        EXPECT_EQUAL(device.between(begin, called), 1.0F);
        EXPECT_EQUAL(calls.load(), 1);
    });
}

TEST_CASE("a kernel that waits for a word has the multiprocessors until that is set", "[at once]") {
    run([](const Device& device, const Report& report) {
        CUdeviceptr word = 0;
        void* parameters[] = {&word};
        EXPECT_EQUAL(cuMemAlloc(&word, 4), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
        const CUstream waits = device.stream(), other = device.stream();
        EXPECT_EQUAL(cuLaunchKernel(device.function("wait"), 1000, 1, 1, 1024, 1, 1, 0, waits, parameters, nullptr),
                     CUDA_SUCCESS);
        device.launch("ms", other);
        EXPECT_EQUAL(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
        const uint32_t set = 1;
        EXPECT_EQUAL(cuMemcpyHtoDAsync(word, &set, sizeof set, device.stream()), CUDA_SUCCESS);
        EXPECT_EQUAL(cuStreamSynchronize(waits), CUDA_SUCCESS);
        EXPECT_EQUAL(cuStreamSynchronize(other), CUDA_SUCCESS);
        EXPECT_EQUAL(cuLaunchKernel(device.function("wait_for_nothing"), 1, 1, 1, 1, 1, 1, 0, waits, nullptr, nullptr),
                     CUDA_ERROR_NOT_SUPPORTED);
    });
}

TEST_CASE("two processes that wait for each other's word on one GPU both end") {
    run_beside(
        [](const Device& own, const Peer& first) {
            const Report& report = own.report;
            CUdeviceptr word = 0, others = 0;
            CUipcMemHandle handle;
            EXPECT_EQUAL(cuMemAlloc(&word, 4), CUDA_SUCCESS);
            EXPECT_EQUAL(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
            EXPECT_EQUAL(cuIpcGetMemHandle(&handle, word), CUDA_SUCCESS);
            first.send(handle);
            EXPECT_EQUAL(cuIpcOpenMemHandle(&others, first.receive<CUipcMemHandle>(), 1), CUDA_SUCCESS);
            meet(own, word, others);
            first.send(1);
            first.receive<int>();
        },
        [](const Device& device, const Report& report, const Peer& peer) {
            CUdeviceptr word = 0, others = 0;
            CUipcMemHandle handle;
            EXPECT_EQUAL(cuMemAlloc(&word, 4), CUDA_SUCCESS);
            EXPECT_EQUAL(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
            EXPECT_EQUAL(cuIpcGetMemHandle(&handle, word), CUDA_SUCCESS);
            EXPECT_EQUAL(cuIpcOpenMemHandle(&others, peer.receive<CUipcMemHandle>(), 1), CUDA_SUCCESS);
            peer.send(handle);
            meet(device, word, others);
            EXPECT_EQUAL(peer.receive<int>(), 1);
            peer.send(1);
            peer.wait();
        });
}

TEST_CASE("the default stream waits for the others, and they for it") {
    run([](const Device& device, const Report& report) {
        CUstream blocking = nullptr;
        EXPECT_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
        const CUevent begin = device.record(blocking);
        device.launch("ms", blocking);
        device.launch("ms", nullptr);
        device.launch("ms", blocking);
        EXPECT_EQUAL(device.between(begin, device.record(blocking)), 3.0F);
    });
}

TEST_CASE("a context's event is reached when all its streams are") {
    run([](const Device& device, const Report& report) {
        const CUstream one = device.stream(), other = device.stream();
        const CUevent begin = device.record(one), all = device.event();
        device.launch("ms", one);
        device.launch("ms", other);
        device.launch("ms", other);
        EXPECT_EQUAL(cuCtxRecordEvent(device.context, all), CUDA_SUCCESS);
        EXPECT_EQUAL(device.between(begin, all), 2.0F);
        EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQUAL(cuEventQuery(all), CUDA_SUCCESS);
    });
}

TEST_CASE("a graph takes the time of its nodes, at each launch") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        CUgraph graph = nullptr;
        CUgraphExec instance = nullptr;
        EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
        for (int i = 0; i < 4; i++)
            device.launch("ms", stream);
        EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphInstantiate(&instance, graph, 0), CUDA_SUCCESS);
        const CUevent begin = device.record(stream);
        for (int i = 0; i < 5; i++)
            EXPECT_EQUAL(cuGraphLaunch(instance, stream), CUDA_SUCCESS);
        EXPECT_EQUAL(device.between(begin, device.record(stream)), 20.0F);
    });
}

TEST_CASE("more work than a GPU's queue has room for waits for that") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        const CUevent begin = device.record(stream);
        for (int i = 0; i < 5000; i++)
            device.launch("ms", stream);
        EXPECT_EQUAL(device.between(begin, device.record(stream)), 5000.0F);
    });
}

TEST_CASE("a context's event that is recorded again before it is reached makes room for others") {
    run([](const Device& device, const Report& report) {
        const CUstream stream = device.stream();
        const CUevent all = device.event();
        CUevent begin = nullptr;
        for (int i = 0; i < 2100; i++) {  // more than the timekeeper has streams
            begin = device.record(stream);
            device.launch("ms", stream);
            EXPECT_EQUAL(cuCtxRecordEvent(device.context, all), CUDA_SUCCESS);
        }
        EXPECT_EQUAL(device.between(begin, all), 1.0F);
    });
}

TEST_CASE("two processes take turns, and one that is alone has the GPU for itself") {
    run_beside(
        [](const Device& own, const Peer& first) {
            const CUstream stream = own.stream();
            first.send(1);
            first.receive<int>();
            for (int i = 0; i < 20; i++)
                own.launch("ms", stream);
            first.send(1);
            cuStreamSynchronize(stream);
            first.receive<int>();
        },
        [](const Device& device, const Report& report, const Peer& peer) {
            peer.receive<int>();
            const CUstream stream = device.stream();
            const CUevent begin = device.record(stream);
            peer.send(1);
            peer.receive<int>();
            for (int i = 0; i < 40; i++)
                device.launch("ms", stream);
            // The other's 20 ms, and at most 11 changes to it and back of 100 µs each.
            const float both = device.between(begin, device.record(stream));
            EXPECT(both >= 60.0F + 18 * 0.1F && both <= 60.0F + 22 * 0.1F);
            const CUevent alone = device.record(stream);
            device.launch("ms", stream);
            EXPECT_EQUAL(device.between(alone, device.record(stream)), 1.0F);
            peer.send(1);
            peer.wait();
        });
}

TEST_CASE("a process that is killed or stopped holds nobody up") {
    const int signal = GENERATE(SIGKILL, SIGSTOP);
    CAPTURE(signal);
    run_beside(
        [](const Device& own, const Peer& first) {
            const CUstream stream = own.stream();
            for (int i = 0; i < 1000; i++)
                own.launch("ms", stream);
            first.send(getpid());
            pause();
        },
        [&](const Device& device, const Report& report, const Peer& peer) {
            const pid_t other = peer.receive<pid_t>();
            kill(other, signal);
            if (signal == SIGKILL)
                peer.wait();
            const CUstream stream = device.stream();
            const CUevent begin = device.record(stream);
            for (int i = 0; i < 10; i++)
                device.launch("ms", stream);
            // The work of a stopped process goes on.
            EXPECT(device.between(begin, device.record(stream)) < 25.0F);
            peer.kill();
        });
}

TEST_CASE("an event between processes is reached when its work is") {
    run_beside(
        [](const Device& own, const Peer& first) {
            const Report& report = own.report;
            const CUstream stream = own.stream();
            CUevent shared = nullptr;
            CUipcEventHandle handle;
            EXPECT_EQUAL(cuEventCreate(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
            EXPECT_EQUAL(cuIpcGetEventHandle(&handle, shared), CUDA_SUCCESS);
            EXPECT_EQUAL(cuLaunchHostFunc(stream, wait_for_peer, const_cast<Peer*>(&first)), CUDA_SUCCESS);
            own.launch("ms", stream);
            EXPECT_EQUAL(cuEventRecord(shared, stream), CUDA_SUCCESS);
            first.send(handle);
            EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
            first.receive<int>();
        },
        [](const Device& device, const Report& report, const Peer& peer) {
            const auto handle = peer.receive<CUipcEventHandle>();
            CUevent shared = nullptr;
            EXPECT_EQUAL(cuIpcOpenEventHandle(&shared, handle), CUDA_SUCCESS);
            EXPECT_EQUAL(cuEventQuery(shared), CUDA_ERROR_NOT_READY);
            const CUstream stream = device.stream();
            EXPECT_EQUAL(cuStreamWaitEvent(stream, shared, 0), CUDA_SUCCESS);
            device.launch("ms", stream);
            peer.send(1);
            EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
            EXPECT_EQUAL(cuEventQuery(shared), CUDA_SUCCESS);
            peer.send(1);
            peer.wait();
        });
}

TEST_CASE("on the real clock no work ends before its time") {
    run(
        [](const Device& device, const Report& report) {
            const auto start = std::chrono::steady_clock::now();
            const CUstream stream = device.stream();
            const CUevent begin = device.record(stream);
            for (int i = 0; i < 20; i++)
                device.launch("ms", stream);
            const float milliseconds = device.between(begin, device.record(stream));
            EXPECT(milliseconds >= 20.0F);
            EXPECT(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(20));
        },
        with("CUSLICE_FAKE_CLOCK", ""));
}

TEST_CASE("the timekeeper is none of the program's children, and has none of its files") {
    run([](const Device&, const Report& report) {
        EXPECT_EQUAL(waitpid(-1, nullptr, WNOHANG), -1);
        EXPECT_EQUAL(errno, ECHILD);
        const std::string files = "/proc/" + std::to_string(timekeeper()) + "/fd/";
        for (int number = 0; number < 3; number++)
            EXPECT_EQUAL(std::filesystem::read_symlink(files + std::to_string(number)), "/dev/null");
    });
}

TEST_CASE("without a timekeeper nothing takes time any more, and one line says so") {
    std::string said;
    const std::string failed = in_child(
        timed,
        [](const Report& report) {
            const Device device(report);
            const CUstream stream = device.stream();
            EXPECT_EQUAL(cuLaunchHostFunc(stream, count_call, nullptr), CUDA_SUCCESS);
            EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
            EXPECT(kill(timekeeper(), SIGKILL) == 0);
            for (int i = 0; i < 3; i++) {
                device.launch("ms", stream);
                EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
            }
            CUevent event = device.record(stream);
            EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
        },
        &said);
    CHECK(failed == "");
    CHECK(said.find("timekeeper has been killed") != std::string::npos);
    CHECK(said.find("timekeeper has been killed") == said.rfind("timekeeper has been killed"));
}

TEST_CASE("costs and clocks that are none are refused by name") {
    const auto [name, value, message] =
        GENERATE(std::tuple{"CUSLICE_FAKE_COST", "ms=soon", "CUSLICE_FAKE_COST: 'ms=soon' is no cost"},
                 std::tuple{"CUSLICE_FAKE_CLOCK", "fast", "CUSLICE_FAKE_CLOCK: 'fast' is neither real nor virtual"});
    std::string said;
    CHECK(in_child(
              with(name, value), [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY); },
              &said) == "");
    CHECK(said.find(message) != std::string::npos);
}

TEST_CASE("processes of one machine have one clock") {
    std::string said;
    const std::string failed = in_child(
        timed,
        [](const Report& report) {
            const Device device(report);
            const pid_t child = fork();
            if (child == 0) {
                setenv("CUSLICE_FAKE_CLOCK", "real", 1);
                execl("/proc/self/exe", "test", "a program whose clock is another one", nullptr);
                _exit(1);
            }
            int status = 0;
            waitpid(child, &status, 0);
            EXPECT_EQUAL(status, 0);
        },
        &said);
    CHECK(failed == "");
    CHECK(said.find("another process of this fake machine has the other clock") != std::string::npos);
}

TEST_CASE("a program whose clock is another one", "[.]") { CHECK(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY); }
