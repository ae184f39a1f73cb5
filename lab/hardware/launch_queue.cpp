// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/launch_queue.h"

#include <time.h>

#include <algorithm>

namespace cuslice::check {

double now_us() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

CUevent make_event() {
    CUevent made = nullptr;
    MUST(cuEventCreate, &made, CU_EVENT_BLOCKING_SYNC);
    return made;
}

double elapsed_ms(CUevent from, CUevent to) {
    float milliseconds = 0;
    MUST(cuEventElapsedTime, &milliseconds, from, to);
    return milliseconds;
}

LaunchQueue::LaunchQueue(Spin& spin, CUstream stream, int kernels, size_t depth)
    : spin_(spin), stream_(stream), kernels_(kernels), depth_(depth), began_(make_event()) {
    if (kernels_ > 1)
        graph_ = spin_.graph(kernels_);
}

void LaunchQueue::begin(double window_ms) {
    window_ms_ = window_ms;
    MUST(cuEventRecord, began_, stream_);
    MUST(cuEventSynchronize, began_);
}

void LaunchQueue::submit() {
    if (queued_.size() == depth_)
        finish_oldest();
    const Marks marks = take_marks();
    MUST(cuEventRecord, marks.begin, stream_);
    call();
    MUST(cuEventRecord, marks.end, stream_);
    queued_.push_back(marks);
}

void LaunchQueue::drain() {
    while (!queued_.empty())
        finish_oldest();
}

LaunchFigures LaunchQueue::figures() const {
    LaunchFigures figures = figures_;
    figures.longest_gap_ms = std::max(figures.longest_gap_ms, window_ms_ - last_end_ms_);
    return figures;
}

LaunchQueue::Marks LaunchQueue::take_marks() {
    if (spare_.empty())
        return {make_event(), make_event()};
    const Marks marks = spare_.back();
    spare_.pop_back();
    return marks;
}

void LaunchQueue::call() {
    const double before = now_us();
    if (graph_)
        MUST(cuGraphLaunch, graph_, stream_);
    else
        spin_.launch(stream_);
    figures_.call_us.push_back(now_us() - before);
}

void LaunchQueue::finish_oldest() {
    const Marks marks = queued_.front();
    queued_.pop_front();
    MUST(cuEventSynchronize, marks.end);
    count(marks);
    spare_.push_back(marks);
}

// A launch that ended after the window isn't counted: others with whom it shared the GPU may have ended by then.
void LaunchQueue::count(const Marks& marks) {
    const double end_ms = elapsed_ms(began_, marks.end);
    if (end_ms > window_ms_)
        return;
    figures_.kernels += kernels_;
    figures_.events_ms += elapsed_ms(marks.begin, marks.end);
    figures_.longest_gap_ms = std::max(figures_.longest_gap_ms, end_ms - last_end_ms_);
    last_end_ms_ = end_ms;
}

}  // namespace cuslice::check
