// SPDX-License-Identifier: Apache-2.0
#include "cli/top/one_machine.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "policy/base/kernel_clock.h"

namespace cuslice::cli::top {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds

bool write_whole(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(file, text.data(), text.size());
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0)
            text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
}

}  // namespace

void OneMachine::look() {
    gpus_.ask();
    snapshot_ = look_(gpus_.latest());
    snapshot_.clock = time_of_day();
    history_.note(snapshot_, kernel_clock(CLOCK_MONOTONIC));
}

void OneMachine::add_descriptors(std::vector<pollfd>& descriptors) const {
    if (gpus_.descriptor() >= 0)
        descriptors.push_back({gpus_.descriptor(), POLLIN, 0});
}

bool OneMachine::take() {
    pollfd answer{gpus_.descriptor(), POLLIN, 0};
    return answer.fd >= 0 && ::poll(&answer, 1, 0) > 0 && gpus_.take();
}

void OneMachine::stream(uint64_t interval) {
    constexpr uint64_t kPatience = 2000;
    uint64_t next = kernel_clock(CLOCK_MONOTONIC) + kPatience * kMillisecond;
    for (bool first = true;;) {
        gpus_.ask();
        uint64_t now = kernel_clock(CLOCK_MONOTONIC);
        if (now >= next || (first && gpus_.latest() != nullptr)) {
            if (!write_whole(STDOUT_FILENO, json_line(json_of(look_(gpus_.latest())))))
                return;
            next = now + interval * kMillisecond;
            first = false;
        }
        now = kernel_clock(CLOCK_MONOTONIC);
        const uint64_t left = now < next ? (next - now + kMillisecond - 1) / kMillisecond : 0;
        // A pipe or a connection that nobody reads is told of without being asked for.
        pollfd ready[] = {{STDOUT_FILENO, 0, 0}, {gpus_.descriptor(), POLLIN, 0}};
        if (::poll(ready, 2, static_cast<int>(std::min<uint64_t>(left, 3'600'000))) <= 0)
            continue;
        if ((ready[0].revents & (POLLERR | POLLHUP)) != 0)
            return;
        if (ready[1].revents != 0)
            gpus_.take();
    }
}

}  // namespace cuslice::cli::top
