// Calls of the driver that the program leaves by a jump out of a signal handler, as it may leave any function of C.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

sigjmp_buf back;

void jump(int) { siglongjmp(back, 1); }

thread_local bool leaves_next_sleep = false;

const auto real_sleep = reinterpret_cast<decltype(&clock_nanosleep)>(dlsym(RTLD_NEXT, "clock_nanosleep"));

struct Call {
    const Driver* driver;
    std::string what;
    std::size_t bytes;
    CUdeviceptr block;

    void operator()() const {
        CUdeviceptr made = 0;
        CUcontext context = nullptr;
        if (what == "alloc") driver->cuMemAlloc_v2(&made, bytes);
        if (what == "managed") driver->cuMemAllocManaged(&made, bytes, CU_MEM_ATTACH_GLOBAL);
        if (what == "async") driver->cuMemAllocAsync(&made, bytes, nullptr);
        if (what == "free") driver->cuMemFree_v2(block);
        if (what == "create") driver->cuCtxCreate_v2(&context, 0, static_cast<CUdevice>(bytes));
        if (what == "destroy") driver->cuCtxDestroy_v2(reinterpret_cast<CUcontext>(block));
    }
};

// Nothing with a destructor lives in here, or in the call. True if it was left.
[[gnu::noinline]] bool leaves(const Call& call) {
    if (sigsetjmp(back, 1) != 0) return true;
    leaves_next_sleep = true;
    call();
    leaves_next_sleep = false;
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
        struct sigaction action {};
        action.sa_handler = jump;
        sigaction(SIGUSR1, &action, nullptr);
        const bool left = leaves(call);
        signal(SIGUSR1, SIG_IGN);
        return answer(CUDA_SUCCESS, static_cast<int>(left));
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
