// SPDX-License-Identifier: Apache-2.0
// A question that the launcher asks in a child process.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/gpus/ask_child.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {

TEST_CASE("a question that nothing answers is given up, and its child killed") {
    const Folder folder;
    // Opening a pipe to read waits until somebody opens it to write.
    const std::string pipe = folder.path() + "/libnvidia-ml.so.1";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    cli::Installation installation;
    installation.executable = kLauncher;
    const cli::Answer answer =
        cli::ask_child(installation, cli::Environment(environ), {cli::kAskNvml, pipe, "1"}, std::chrono::seconds(1));
    CHECK(answer.hung);
    CHECK(answer.failure == "NVML gave no answer in 1 s");
    int status = 0;
    REQUIRE(::wait(&status) > 0);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
}

}  // namespace cuslice::tests
