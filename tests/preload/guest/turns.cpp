// SPDX-License-Identifier: Apache-2.0
// Work for a GPU's multiprocessors: kernels that take a time or wait for a word, by their names (CUSLICE_FAKE_COST),
// and all that starts them.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/preload/guest/guest.h"
#include "tests/preload/guest/refusal_check.h"
#include "tests/sleeping.h"

namespace guest {
namespace {

constexpr const char* kCode = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry ms() { ret; }
.visible .entry wait(.param .u64 word) { ret; }
)";

CUstream stream_of(const Program& p, const std::string& name) { return name == "-" ? nullptr : p.streams.at(name); }

/// One launch of one thread, as words say it: CODE KERNEL STREAM [WORD]. "-" is the default stream.
struct Launch {
    Launch(Program& p, const Words& w, size_t first = 0) : driver(p.driver), stream(stream_of(p, w.at(first + 2))) {
        if (w.size() > first + 3)
            word = p.blocks.at(w[first + 3]);
        found = driver.cuModuleGetFunction(&kernel, p.modules.at(w.at(first)), w.at(first + 1).c_str());
    }
    CUresult operator()() {
        void* parameters[] = {&word};
        return found != CUDA_SUCCESS ? found
                                     : driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    }
    CUresult cooperative() {
        void* parameters[] = {&word};
        return driver.cuLaunchCooperativeKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters);
    }
    CUresult by_configuration() {
        void* parameters[] = {&word};
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.hStream = stream;
        return driver.cuLaunchKernelEx(&config, kernel, parameters, nullptr);
    }

    const Driver& driver;
    CUstream stream;
    CUdeviceptr word = 0;
    CUfunction kernel = nullptr;
    CUresult found;
};

CUresult captured(Program& p, const Words& w, CUgraph* graph) {
    CUstream& stream = p.streams["captured"];
    CUresult result = p.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = p.driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (result == CUDA_SUCCESS)
        result = Launch(p, {w.at(1), w.at(2), "captured"})();
    const CUresult ended = p.driver.cuStreamEndCapture(stream, graph);
    return result == CUDA_SUCCESS ? ended : result;
}

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Asleep at several looks, and not woken in between: in a wait that is long, and not for a lock.
void await_long_sleep(pid_t thread) {
    constexpr int kLooks = 5;
    uint64_t naps = 0;
    for (int alike = 0; alike < kLooks;) {
        cuslice::tests::await_sleep(thread);
        const uint64_t seen = cuslice::tests::naps_of(getpid(), thread);
        alike = seen == naps ? alike + 1 : 0;
        naps = seen;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

sigjmp_buf back;

void jump(int) { siglongjmp(back, 1); }

// Nothing with a destructor lives in here. True if the launch was left.
[[gnu::noinline]] bool leaves(Launch* launch, std::atomic<bool>* begun) {
    if (sigsetjmp(back, 1) != 0)
        return true;
    *begun = true;
    (*launch)();
    return false;
}

bool leave_waiting(Launch* launch) {
    struct sigaction action {};
    action.sa_handler = jump;
    sigaction(SIGUSR1, &action, nullptr);
    std::atomic<bool> begun{false};
    std::thread signaller([&, of = pthread_self(), thread = cuslice::tests::this_thread()] {
        while (!begun)
            std::this_thread::yield();
        await_long_sleep(thread);
        pthread_kill(of, SIGUSR1);
    });
    const bool left = leaves(launch, &begun);
    signaller.join();
    signal(SIGUSR1, SIG_IGN);
    return left;
}

int status_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void add_turn_commands(Commands& commands) {
    // code NAME: a module with the kernels `ms` and `wait`, which has a word
    commands["code"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuModuleLoadData(&p.modules[w.at(0)], kCode));
    };
    // run CODE KERNEL STREAM [WORD], cooperative …, configured …
    commands["run"] = [](Program& p, const Words& w) { return answer(Launch(p, w)()); };
    commands["cooperative"] = [](Program& p, const Words& w) { return answer(Launch(p, w).cooperative()); };
    commands["configured"] = [](Program& p, const Words& w) { return answer(Launch(p, w).by_configuration()); };
    // runs THREADS COUNT CODE KERNEL STREAM [WORD]: each thread so many; how many failed
    commands["runs"] = [](Program& p, const Words& w) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> bad{0};
        for (size_t i = 0; i < number(w.at(0)); ++i)
            threads.emplace_back([&] {
                p.driver.cuCtxSetCurrent(p.current);
                Launch launch(p, w, 2);
                for (size_t k = 0; k < number(w.at(1)); ++k)
                    bad += launch() != CUDA_SUCCESS;
            });
        for (std::thread& thread : threads)
            thread.join();
        return answer(CUDA_SUCCESS, bad.load());
    };
    // newrun CODE KERNEL STREAM: by a function that is newer than any known one
    commands["newrun"] = [](Program& p, const Words& w) {
        void* found = nullptr;
        const CUresult result = p.driver.cuGetProcAddress_v2("cuLaunchFakeKernel", &found, 14000, 0, nullptr);
        if (result != CUDA_SUCCESS || !found)
            return answer(CUDA_ERROR_NOT_FOUND);
        const Launch launch(p, w);
        return answer(reinterpret_cast<CUresult (*)(CUfunction, CUstream)>(found)(launch.kernel, launch.stream));
    };
    // leaverun CODE KERNEL STREAM: a launch that has to wait, and that the program leaves; 1 if it was left
    commands["leaverun"] = [](Program& p, const Words& w) {
        Launch launch(p, w);
        return answer(CUDA_SUCCESS, static_cast<int>(leave_waiting(&launch)));
    };
    // forkrun CODE KERNEL STREAM: in a forked child; what it was answered there
    commands["forkrun"] = [](Program& p, const Words& w) {
        Launch launch(p, w);
        const pid_t child = fork();
        if (child == 0) {
            alarm(120);  // one that waits for what nobody gives it is killed
            _exit(launch());
        }
        return answer(CUDA_SUCCESS, status_of(child));
    };
    // kernelgraph NAME CODE KERNEL
    commands["kernelgraph"] = [](Program& p, const Words& w) {
        Program::Graph& graph = p.graphs[w.at(0)];
        const CUresult made = captured(p, w, &graph.graph);
        return answer(made != CUDA_SUCCESS ? made
                                           : p.driver.cuGraphInstantiateWithFlags(&graph.instance, graph.graph, 0));
    };
    // set WORD VALUE STREAM: by a fill
    commands["set"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemsetD32Async(p.blocks.at(w.at(0)), static_cast<unsigned>(number(w.at(1))), 1,
                                                stream_of(p, w.at(2))));
    };
    // poke WORD VALUE: by a copy from the host
    commands["poke"] = [](Program& p, const Words& w) {
        const auto value = static_cast<uint32_t>(number(w.at(1)));
        return answer(p.driver.cuMemcpyHtoD_v2(p.blocks.at(w.at(0)), &value, sizeof value));
    };
    commands["query"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuStreamQuery(stream_of(p, w.at(0))));
    };
    // settle STREAM: waits for its work
    commands["settle"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuStreamSynchronize(stream_of(p, w.at(0))));
    };
    // clock COMMAND …: its answer, and the times before and after it
    commands["clock"] = [](Program& p, const Words& w) {
        const uint64_t before = now();
        const std::string said = execute(p, w);
        return said + " " + std::to_string(before) + " " + std::to_string(now());
    };
}

}  // namespace guest
