// SPDX-License-Identifier: Apache-2.0
// `--wait`: what the launcher does where a slice is refused. It queues up on each GPU that would do, says so, and looks
// again until the slice can be had or the time is over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/gpus/machine.h"
#include "cli/ledger/reservation.h"
#include "config/settings.h"

namespace cuslice::cli {

using Reservations = std::vector<std::unique_ptr<Reservation>>;

class Waiting {
  public:
    Waiting(const Settings& settings, Machine& machine, std::string command);

    /// After a refusal by each of `refused`: waits for a moment, in which others may have made room, and looks at them
    /// again. The first time it takes their tickets and says what is being waited for. False if the refusal stands.
    /// Without `--wait` it says nothing, and looks again only for what may be the context of another job that is being
    /// made.
    bool go_on(const Reservations& refused);
    /// One of them was had: says so if it took waiting.
    void ended(const Reservation& taken);
    /// The message about a refusal that stands.
    std::string last_word(const Reservation& one) const;

  private:
    bool settle(const Reservations& refused);
    void begin(const Reservations& refused);
    void refresh(const Reservations& refused);

    Machine& machine_;
    const std::string command_;
    uint64_t most_ = 0;                  // milliseconds, for all GPUs together
    uint64_t settled_ = 0;               // the same, so far
    const uint64_t start_;               // these three by kernel_clock()
    uint64_t asked_driver_, since_ = 0;  // since_: 0 while nothing is waited for
    const Reservation* kept_ = nullptr;  // the GPU on which something is kept for it
};

}  // namespace cuslice::cli
