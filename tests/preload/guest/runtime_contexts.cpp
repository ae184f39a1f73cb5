// SPDX-License-Identifier: Apache-2.0
// Primary contexts that the CUDA runtime makes, as the driver tells of them: each situation in a process of its own.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

namespace {

constexpr size_t kMiB = 1 << 20;

template <typename Function>
Function* driver(Function*, const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<Function*>(dlsym(library, name));
}
#define DRIVER(name) driver(static_cast<decltype(&name)>(nullptr), #name)

void say(const char* what, int result) { std::printf("  %s: %d\n", what, result); }

void say_states(const char* when) {
    for (int gpu = 0; gpu < 2; gpu++) {
        unsigned flags = 99;
        int active = -1;
        const CUresult result = DRIVER(cuDevicePrimaryCtxGetState)(gpu, &flags, &active);
        std::printf("  %s: GPU %d: %d, flags %u, active %d\n", when, gpu, result, flags, active);
    }
}

void say_current(const char* when) {
    CUcontext context = nullptr;
    CUdevice device = -1;
    const CUresult result = DRIVER(cuCtxGetCurrent)(&context);
    const CUresult known = context ? DRIVER(cuCtxGetDevice)(&device) : CUDA_SUCCESS;
    std::printf("  %s: %d, %s, GPU %d (%d)\n", when, result, context ? "a context" : "none", device, known);
}

void* allocate() {
    void* memory = nullptr;
    say("cudaMalloc", cudaMalloc(&memory, kMiB));
    return memory;
}

void initialise() { say("cudaFree(0)", cudaFree(nullptr)); }
void choose(int gpu) { say("cudaSetDevice", cudaSetDevice(gpu)); }
void reset() { say("cudaDeviceReset", cudaDeviceReset()); }
void use(void* memory) { say("cudaMemset", cudaMemset(memory, 0, kMiB)); }
void retain(int gpu) {
    CUcontext context = nullptr;
    say("cuDevicePrimaryCtxRetain", DRIVER(cuDevicePrimaryCtxRetain)(&context, gpu));
}

void memory_alone() {
    allocate();
    say_states("after cudaMalloc");
}

void asked_by_another_thread() {
    initialise();
    std::thread([] { say_states("in another thread"); }).join();
    say_current("in the first");
}

void beside_a_retained_one() {
    retain(1);
    initialise();
    say_states("after cudaFree(0)");
    say_current("then");
}

void memory_while_another_is_reset() {
    void* const kept = allocate();
    choose(1);
    allocate();
    say_states("both used");
    reset();
    say_states("after a reset of 1");
    choose(0);
    use(kept);
}

void used_again_after_a_reset() {
    choose(0);
    allocate();
    choose(1);
    void* const kept = allocate();
    choose(0);
    reset();
    say_states("after a reset of 0");
    use(allocate());
    say_states("used again");
    choose(1);
    use(kept);
}

void reset_alone_and_used_again() {
    allocate();
    reset();
    say_states("after a reset");
    use(allocate());
    say_states("used again");
}

void flags_of_the_runtime() {
    say("cudaSetDeviceFlags", cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    say_states("flags set");
    initialise();
    say_states("after cudaFree(0)");
    unsigned flags = 0;
    say("cudaGetDeviceFlags", cudaGetDeviceFlags(&flags));
    say("flags", static_cast<int>(flags));
}

void flags_of_the_driver() {
    say("cuDevicePrimaryCtxSetFlags", DRIVER(cuDevicePrimaryCtxSetFlags)(0, CU_CTX_SCHED_BLOCKING_SYNC));
    initialise();
    say_states("after cudaFree(0)");
}

void retained_and_released() {
    void* const kept = allocate();
    retain(0);
    say("cuDevicePrimaryCtxRelease", DRIVER(cuDevicePrimaryCtxRelease)(0));
    say_states("released");
    use(kept);
}

void reset_by_a_thread_of_another() {
    initialise();
    std::thread([] {
        say_current("in a new thread");
        choose(1);
        allocate();
        reset();
        say_states("after a reset of 1");
    }).join();
    say_current("in the first");
    use(allocate());
    say_states("at the end");
}

void second_thread_on_the_first_gpu() {
    choose(1);
    void* const kept = allocate();
    std::thread([] {
        initialise();
        say_current("in a new thread");
        say_states("both used");
        allocate();
        reset();
        say_states("after a reset of 0");
    }).join();
    use(kept);
}

void made_current_by_handle() {
    initialise();
    CUcontext mine = nullptr, retained = nullptr;
    DRIVER(cuCtxGetCurrent)(&mine);
    DRIVER(cuCtxSetCurrent)(nullptr);
    say_current("without one");
    DRIVER(cuCtxSetCurrent)(mine);
    say_current("with it again");
    DRIVER(cuDevicePrimaryCtxRetain)(&retained, 0);
    say("the same handle", mine == retained);
}

struct Situation {
    const char* name;
    void (*run)();
};
#define SITUATION(name) \
    { #name, name }
constexpr Situation kSituations[] = {
    SITUATION(memory_alone),
    SITUATION(asked_by_another_thread),
    SITUATION(beside_a_retained_one),
    SITUATION(memory_while_another_is_reset),
    SITUATION(used_again_after_a_reset),
    SITUATION(reset_alone_and_used_again),
    SITUATION(flags_of_the_runtime),
    SITUATION(flags_of_the_driver),
    SITUATION(retained_and_released),
    SITUATION(reset_by_a_thread_of_another),
    SITUATION(second_thread_on_the_first_gpu),
    SITUATION(made_current_by_handle),
};

}  // namespace

int main() {
    for (const Situation& situation : kSituations) {
        std::printf("%s\n", situation.name);
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            say("cuInit", DRIVER(cuInit)(0));
            situation.run();
            std::fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0)
            std::printf("  ended with %d\n", status);
    }
    return 0;
}
