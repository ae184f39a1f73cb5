// SPDX-License-Identifier: Apache-2.0
// The live view of `cuslice top`.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/top/choice.h"
#include "cli/top/frame.h"
#include "cli/top/target.h"

namespace cuslice::cli::top {

/// The subject of a live view. It starts children that ask, between look() and stop(). Not thread-safe.
class Source {
  public:
    virtual ~Source() = default;
    /// Looks again. What it has to wait for comes later, to take().
    virtual void look() = 0;
    /// Adds descriptors that can be read once something has come.
    virtual void add_descriptors(std::vector<pollfd>& descriptors) const = 0;
    /// Reads what has come, and never waits. True if a frame is to be drawn at once.
    virtual bool take() = 0;
    /// Milliseconds after which take() has something to do although nothing comes.
    virtual uint64_t patience() const { return 3'600'000; }
    /// A frame with what is chosen of all that has come so far.
    virtual Lines draw(const Look& look, const Choice& choice) const = 0;
    /// Jobs and groups whose limits can be changed here.
    virtual std::vector<Target> targets(const Look&) const { return {}; }
    /// Ends all that was started. The destructor does too.
    virtual void stop() = 0;
};

/// Draws `source` each `interval` milliseconds until `q` is pressed, or the terminal is gone. Signals that end a
/// process end this one as they always do, after the terminal was given back and `source` was stopped. `set_limit`
/// serves the key that changes a limit.
void show_live(Source& source, uint64_t interval, SetLimit set_limit);

}  // namespace cuslice::cli::top
