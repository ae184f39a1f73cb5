// SPDX-License-Identifier: Apache-2.0
// Calls of the driver that the program leaves by a jump out of a signal handler, as it may leave any function of C.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

sigjmp_buf back;

void jump(int) { siglongjmp(back, 1); }

thread_local bool leaves_next_sleep = false;

// The locks of NVML's that this thread has while it is watched; the next one is where the signal comes.
thread_local bool watches_nvml = false;
thread_local int leaves_next_lock = 0, nvml_locks = 0;
int locks_left = 0;

void jump_out_of_nvml(int) {
    locks_left = nvml_locks;
    siglongjmp(back, 1);
}

bool is_nvml(const void* code) {
    Dl_info found;
    return dladdr(code, &found) != 0 && std::strstr(found.dli_fname, "nvidia-ml") != nullptr;
}

using OfMutex = int(pthread_mutex_t*);

// Libraries lock before this program's own variables are made.
OfMutex* real(const char* name, std::atomic<OfMutex*>& known) {
    if (known == nullptr)
        known = reinterpret_cast<OfMutex*>(dlsym(RTLD_NEXT, name));
    return known;
}
constinit std::atomic<OfMutex*> real_lock{nullptr}, real_unlock{nullptr};

const auto real_sleep = reinterpret_cast<decltype(&clock_nanosleep)>(dlsym(RTLD_NEXT, "clock_nanosleep"));

struct Call {
    const Driver* driver;
    std::string what;
    size_t bytes;
    CUdeviceptr block;
    CUfunction kernel = nullptr;

    void operator()() const {
        CUdeviceptr made = 0;
        CUcontext context = nullptr;
        if (what == "alloc")
            driver->cuMemAlloc_v2(&made, bytes);
        if (what == "managed")
            driver->cuMemAllocManaged(&made, bytes, CU_MEM_ATTACH_GLOBAL);
        if (what == "async")
            driver->cuMemAllocAsync(&made, bytes, nullptr);
        if (what == "free")
            driver->cuMemFree_v2(block);
        if (what == "create")
            driver->cuCtxCreate_v2(&context, 0, static_cast<CUdevice>(bytes));
        if (what == "retain")
            driver->cuDevicePrimaryCtxRetain(&context, static_cast<CUdevice>(bytes));
        if (what == "destroy")
            driver->cuCtxDestroy_v2(reinterpret_cast<CUcontext>(block));
        if (what == "launch")
            driver->cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    }
};

// Nothing with a destructor lives in here, or in the call. True if it was left.
[[gnu::noinline]] bool leaves(const Call& call) {
    if (sigsetjmp(back, 1) != 0)
        return true;
    leaves_next_sleep = true;
    call();
    leaves_next_sleep = false;
    return false;
}

bool leaves_driver(const Call& call) {
    struct sigaction action {};
    action.sa_handler = jump;
    sigaction(SIGUSR1, &action, nullptr);
    const bool left = leaves(call);
    signal(SIGUSR1, SIG_IGN);
    return left;
}

// The same where the signal comes inside NVML, while that has a lock.
[[gnu::noinline]] bool leaves_nvml(const Call& call, int signal) {
    if (sigsetjmp(back, 1) != 0)
        return true;
    leaves_next_lock = signal;
    watches_nvml = true;
    call();
    return false;
}

}  // namespace

void add_leave_commands(Commands& commands) {
    // leave alloc|managed|async BYTES, leave free NAME, leave create DEVICE, leave destroy NAME: 1 if the call was left
    commands["leave"] = [](Program& p, const Words& w) {
        const bool free = w.at(0) == "free", destroy = w[0] == "destroy";
        const Call call{&p.driver, w[0], free || destroy ? 0 : number(w.at(1)),
                        free      ? p.blocks.at(w.at(1))
                        : destroy ? reinterpret_cast<CUdeviceptr>(p.contexts.at(w.at(1)))
                                  : 0};
        return answer(CUDA_SUCCESS, static_cast<int>(leaves_driver(call)));
    };
    // leavelaunch CODE KERNEL: the same
    commands["leavelaunch"] = [](Program& p, const Words& w) {
        Call call{&p.driver, "launch", 0, 0};
        const CUresult found = p.driver.cuModuleGetFunction(&call.kernel, p.modules.at(w.at(0)), w.at(1).c_str());
        return found != CUDA_SUCCESS ? answer(found) : answer(found, static_cast<int>(leaves_driver(call)));
    };
    // leavenvml alloc BYTES SIGNAL, leavenvml retain DEVICE SIGNAL: 1 if the call was left, and how many of NVML's
    // locks were left with it
    commands["leavenvml"] = [](Program& p, const Words& w) {
        const Call call{&p.driver, w.at(0), number(w.at(1)), 0};
        const int signal_number = static_cast<int>(number(w.at(2)));
        struct sigaction action {};
        action.sa_handler = jump_out_of_nvml;
        sigaction(signal_number, &action, nullptr);
        const bool left = leaves_nvml(call, signal_number);
        watches_nvml = false;
        leaves_next_lock = nvml_locks = 0;
        signal(signal_number, SIG_IGN);
        return answer(CUDA_SUCCESS, static_cast<int>(left), locks_left);
    };
}

}  // namespace guest

// The fake driver sleeps where a call of it is to take long (CUSLICE_FAKE_INJECT). The signal comes in the middle of
// that, neither before nor after it however busy the machine is.
extern "C" __attribute__((visibility("default"))) int clock_nanosleep(clockid_t clock, int flags, const timespec* span,
                                                                      timespec* left) {
    if (guest::leaves_next_sleep) {
        guest::leaves_next_sleep = false;
        raise(SIGUSR1);
    }
    return guest::real_sleep(clock, flags, span, left);
}

extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
    const int result = guest::real("pthread_mutex_lock", guest::real_lock)(mutex);
    if (guest::watches_nvml && guest::is_nvml(__builtin_return_address(0))) {
        guest::nvml_locks++;
        const int signal = guest::leaves_next_lock;
        guest::leaves_next_lock = 0;
        if (signal != 0)
            raise(signal);
    }
    return result;
}

extern "C" __attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t* mutex) {
    if (guest::watches_nvml && guest::is_nvml(__builtin_return_address(0)))
        guest::nvml_locks--;
    return guest::real("pthread_mutex_unlock", guest::real_unlock)(mutex);
}
