// Under which pid NVML lists this process.
#include "virtual_gpu/nvml/own_pid.h"

#include "tests/catch.h"

using namespace cuslice;

TEST_CASE("on the host, and from driver 545 on everywhere, NVML lists a process by its own pid") {
    CHECK(pid_in_nvml({812, 812, true, 535}) == 812);
    CHECK(pid_in_nvml({812, 812, true, 0}) == 812);
    CHECK(pid_in_nvml({12, 12, false, 545}) == 12);
    CHECK(pid_in_nvml({12, 4711, false, 580}) == 12);
}

TEST_CASE("in a container of an older driver it is known only by the host's /proc") {
    CHECK(pid_in_nvml({12, 4711, false, 535}) == 4711);
    CHECK(pid_in_nvml({12, 12, false, 544}) == 0);
    CHECK(pid_in_nvml({12, 0, false, 470}) == 0);  // no /proc at all
    CHECK(pid_in_nvml({12, 12, false, 0}) == 0);
    PidFacts unread;
    unread.own = 12;
    CHECK(pid_in_nvml(unread) == 0);
}

TEST_CASE("the outermost pid is the first of NSpid") {
    CHECK(outermost_pid("Name:\tx\nPid:\t12\nNSpid:\t4711\t12\nNSpgid:\t1\n") == 4711);
    CHECK(outermost_pid("Name:\tx\nNSpid:\t12\n") == 12);
    CHECK(outermost_pid("Name:\tNSpid:\t9\n") == 0);
    CHECK(outermost_pid("Name:\tx\nNSpid:\t") == 0);
    CHECK(outermost_pid("") == 0);
}
