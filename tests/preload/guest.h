// SPDX-License-Identifier: Apache-2.0
// A program in a child process that does what it is told, a line at a time: tests/preload/guest/. So a test looks at
// the books while the program stands still, and needs no clock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/cli/child.h"
#include "tests/preload/results.h"

namespace cuslice::tests {

using Words = std::vector<std::string>;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

/// The environment of a child that runs without cuslice on fake GPUs, whose books lie in `folder`.
Words raw(const std::string& fake, const std::string& folder, const Words& more = {});
/// The same under cuslice, as LD_PRELOAD and CUSLICE_ variables alone do it.
Words sliced(const std::string& fake, const std::string& folder, const Words& more = {});
/// Environment of every child: a PATH, and the sanitizers' settings.
Words plain(const Words& more = {});
/// The value of LD_PRELOAD for a child under cuslice; a sanitizer's runtime has to be first.
std::string preload_list();

/// One process's use of one GPU according to the fake driver's books, read here, without cuslice.
struct Held {
    bool known = false;  // false: the process has never opened the GPU
    uint64_t used = 0, peak = 0;
    unsigned contexts = 0;
    // Memory that it made, exported and released, and that others keep on the GPU: in no process's `used`.
    uint64_t unlisted = 0;
};
/// `uuid`: the beginning of a GPU's; empty: the only one that there is.
Held books_of(const std::string& folder, int pid, const std::string& uuid = "");
/// Totals over all GPUs; the peak is the sum of theirs.
Held all_books_of(const std::string& folder, int pid);

/// A program in a child process, and the test's ends of its pipes. `error` doesn't block. SIGPIPE is ignored here from
/// then on.
struct Piped {
    pid_t pid;
    int in, out, error;
};
Piped spawn_on_pipes(const Words& words, const Words& environment);

/// How a line of a guest's begins that was answered as asked.
class Guest {
  public:
    Guest(const Words& words, const Words& environment);
    /// A guest of this route: see guest/routes.h.
    static Words route(const std::string& name);
    ~Guest();
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    /// Sends a line and returns the answer's line. "(gone)" if the guest ended instead.
    std::string ask(const std::string& line);
    /// The guest looks whether each call that is refused leaves everything as it was, and ask() throws if not. Leaves
    /// out what this one's refusals may change: "free", "stack" or "out". `why` is for whoever reads the test.
    void let_change(const std::string& what, const std::string& why);
    /// The same, of an answer that begins with a number: a CUresult; -1 if it is none.
    int code(const std::string& line);
    /// The number at this place of the answer, counted from 0.
    uint64_t number(const std::string& line, unsigned place = 1);
    /// The pid that the guest gives as its own, which a shell or a fork may have made another than ours.
    int pid();
    /// Closes its input, waits for its end and returns the exit code, or 128 and the signal.
    int finish();
    /// Everything it wrote to stderr; complete after finish().
    const std::string& err() const { return err_; }
    /// Lines of stderr that begin with "cuslice: ".
    Words complaints();
    void kill(int signal);
    /// The process that was started for it, as the host counts: the guest, or what starts one in a container.
    int child() const { return child_; }

  private:
    void drain();
    int end();
    pid_t child_ = -1;
    int in_ = -1, out_ = -1, error_ = -1;
    std::string pending_, err_;
};

Words split_words(const std::string& text);
Words split_lines(const std::string& text);

}  // namespace cuslice::tests
