// SPDX-License-Identifier: Apache-2.0
// Submits kernels to the GPUs, in batches of which one is always queued, until it is killed or its parent ends: the
// program of tests/bench/time_shares.py. Says "ready" once the first batch is submitted.
//   cuslice_bench_submitter KERNEL BATCH [--pause MS] [--graphs] [--gpus N] [--bucket PERCENT]
//
//   --pause   sleeps so long after each batch, which it waits for: then it is idle at times
//   --bucket  throttles its own launches by NVML
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/token_bucket.h"
#include "tests/turns/kernels.h"

namespace {

using cuslice::bench::TokenBucket;
using cuslice::tests::KernelStream;
using cuslice::tests::LaunchingDriver;

struct Options {
    std::string kernel;
    unsigned batch = 1;
    double pause = 0;  // ms
    bool graphs = false;
    int gpus = 1;
    double bucket = 0;
};

bool read(char** words, Options* options) {
    if (!words[1] || !words[2])
        return false;
    options->kernel = words[1];
    options->batch = static_cast<unsigned>(std::atoi(words[2]));
    for (char** word = words + 3; *word; word++) {
        const std::string name = *word;
        if (name == "--graphs") {
            options->graphs = true;
            continue;
        }
        if (!*++word)
            return false;
        const double value = std::atof(*word);
        if (name == "--pause")
            options->pause = value;
        else if (name == "--gpus")
            options->gpus = static_cast<int>(value);
        else if (name == "--bucket")
            options->bucket = value;
        else
            return false;
    }
    return options->batch > 0;
}

class Submitter {
  public:
    explicit Submitter(const Options& options) : options_(options) {
        for (int gpu = 0; gpu < options.gpus; gpu++)
            streams_.push_back(std::make_unique<KernelStream>(driver_, gpu, options.kernel));
        if (options.bucket > 0)
            bucket_ = std::make_unique<TokenBucket>(options.bucket);
    }

    // To several GPUs by turns: one thread feeds all.
    void submit_batch() {
        const unsigned pieces = options_.graphs ? 1 : options_.batch;
        for (unsigned i = 0; i < pieces; i++)
            for (const auto& stream : streams_)
                submit_piece(*stream);
    }

    void end_batch() {
        for (const auto& stream : streams_)
            options_.pause > 0 ? stream->finish() : stream->end_batch();
        if (options_.pause > 0)
            usleep(static_cast<useconds_t>(options_.pause * 1000));
    }

  private:
    void submit_piece(KernelStream& stream) {
        if (bucket_)
            bucket_->take();
        options_.graphs ? stream.launch_graph(options_.batch) : stream.launch(1);
    }

    const Options options_;
    LaunchingDriver driver_;
    std::vector<std::unique_ptr<KernelStream>> streams_;
    std::unique_ptr<TokenBucket> bucket_;
};

}  // namespace

int main(int, char** words) {
    Options options;
    if (!read(words, &options)) {
        std::fprintf(stderr, "usage: %s KERNEL BATCH [--pause MS] [--graphs] [--gpus N] [--bucket PERCENT]\n",
                     words[0]);
        return 64;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Submitter submitter(options);
    submitter.submit_batch();
    std::puts("ready");
    std::fflush(stdout);
    for (;;) {
        submitter.end_batch();
        submitter.submit_batch();
    }
}
