// SPDX-License-Identifier: Apache-2.0
// A program whose GPUs are never idle, and that does what it is told between two batches of kernels, a line at a time:
// tests/turns/random_test.cpp. Ends with its input.
//   turns_player GPUS KERNEL BATCH FOLDER
//
//   GPUS      bits of the GPUs that it uses
//   graph     captures a graph, launches and destroys it
//   kept      launches a graph that it keeps
//   fork      makes a child that ends
//   pause MS  has no work for so long
//   export N, wait N   an event for other processes, which lies in FOLDER; what comes next waits for that of another
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/turns/kernels.h"

namespace {

using cuslice::tests::KernelStream;
using cuslice::tests::LaunchingDriver;

class Player {
  public:
    Player(unsigned gpus, const std::string& kernel, unsigned batch, std::string folder)
        : batch_(batch), folder_(std::move(folder)) {
        for (int gpu = 0; gpus >> gpu; gpu++)
            if (gpus >> gpu & 1)
                streams_.push_back(std::make_unique<KernelStream>(driver_, gpu, kernel));
    }

    void play() {
        while (obey()) {
            for (unsigned i = 0; i < batch_; i++)
                each([](KernelStream& stream) { stream.launch(1); });
            each([](KernelStream& stream) { stream.end_batch(); });
        }
        each([](KernelStream& stream) { stream.finish(); });
    }

  private:
    void each(const std::function<void(KernelStream&)>& act) {
        for (const auto& stream : streams_)
            act(*stream);
    }

    // All that it has been told by now. False: there is no more to come.
    bool obey() {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        while (poll(&input, 1, 0) > 0) {
            char byte = 0;
            if (read(STDIN_FILENO, &byte, 1) != 1)
                return false;
            line_ += byte;
            if (byte == '\n')
                act(std::exchange(line_, {}));
        }
        return true;
    }

    void act(const std::string& line) {
        std::istringstream words(line);
        std::string what, number;
        words >> what >> number;
        if (what == "graph")
            each([&](KernelStream& stream) { stream.launch_new_graph(batch_); });
        else if (what == "kept")
            each([&](KernelStream& stream) { stream.launch_graph(batch_); });
        else if (what == "export")
            streams_.front()->export_event(folder_ + "/" + number);
        else if (what == "wait")
            streams_.front()->wait_for_event_of(folder_ + "/" + number);
        else if (what == "pause")
            pause(static_cast<useconds_t>(std::stoul(number)) * 1000);
        else if (what == "fork" && fork() == 0)
            _exit(0);
    }

    void pause(useconds_t microseconds) {
        each([](KernelStream& stream) { stream.finish(); });
        usleep(microseconds);
    }

    const unsigned batch_;
    const std::string folder_;
    LaunchingDriver driver_;
    std::vector<std::unique_ptr<KernelStream>> streams_;
    std::string line_;
};

}  // namespace

int main(int count, char** words) {
    if (count != 5)
        return 64;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    Player(static_cast<unsigned>(std::atoi(words[1])), words[2], static_cast<unsigned>(std::atoi(words[3])), words[4])
        .play();
    return 0;
}
