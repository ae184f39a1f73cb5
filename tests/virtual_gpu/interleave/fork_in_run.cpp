// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/fork_in_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include "policy/base/mutex.h"
#include "tests/interleave/steps.h"

namespace cuslice::tests {

bool fork_in_run(const std::function<bool()>& in_child) {
    constexpr unsigned kTimes = 16;
    constexpr unsigned kSeconds = 60;  // a lock that nobody gives back would be waited for
    static unsigned count = 0;
    the_lock_list.take();
    const pid_t child = count++ % kTimes == 0 ? fork() : -1;
    if (child == 0) {
        leave_run();
        alarm(kSeconds);
        the_lock_list.give_back();
        the_lock_list.free_others();
        _exit(in_child() ? 0 : 1);
    }
    the_lock_list.give_back();
    int status = 0;
    return child < 0 || (waitpid(child, &status, 0) == child && status == 0);
}

}  // namespace cuslice::tests
